import { type ApiDocument, parametersOf, type Schema } from '@platform/contract/docs/document'
import { openApiDocument } from '@platform/contract/openapi'
import type { Ask } from './fixtures.ts'
import type { Row } from './table.ts'

/** Where the requests of an operation name things of the platform: `params.id`, `query.filterId`, `body.jobs.clusterId`. */

const document = JSON.parse(JSON.stringify(openApiDocument())) as ApiDocument

/** Ids that the platform did not give. */
const othersIds = new Set(['widgetId', 'tenantId', 'clientId'])

const isId = (name: string): boolean => /^(ids?|actor)$|Ids?$/.test(name) && !othersIds.has(name)

/** What a list is filtered by may be an id, too; what an entry is written about is a text. */
const isIdOfParameter = (name: string): boolean => name === 'resource' || isId(name)

function resolved(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (document.components.schemas[name] ?? {})
}

function placesIn(given: Schema, place: string): string[] {
  const schema = resolved(given)
  const choices = (schema.anyOf ?? []).flatMap((choice) => placesIn(choice, place))
  const items = schema.items ? placesIn(schema.items, place) : []
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    isId(name) ? [`${place}.${name}`] : placesIn(member ?? {}, `${place}.${name}`),
  )
  return [...choices, ...items, ...members]
}

export function idPlaces({ endpoint }: Row): string[] {
  const operation = document.paths[endpoint.path]?.[endpoint.method]
  const given = operation ? parametersOf(document, operation) : []
  const named = given.filter(({ in: where, name }) => where !== 'header' && isIdOfParameter(name))
  const parameters = named.map(({ in: where, name }) => `${where === 'path' ? 'params' : where}.${name}`)
  const body = operation?.requestBody?.content['application/json']?.schema
  return [...parameters, ...(body ? placesIn(body, 'body') : [])]
}

/** What stands at a place of a request. */
export function valueAt(ask: Ask, place: string): unknown {
  let value: any = ask
  for (const name of place.split('.')) value = (Array.isArray(value) ? value[0] : value)?.[name]
  return value
}

/** A request with what another one says at a place. Of several filters that one alone is left: none hides another. */
export function withForeign(mine: Ask, theirs: Ask, place: string): Ask {
  const { query: _, ...rest } = mine
  return swapped(place.startsWith('query.') ? rest : mine, theirs, place.split('.'))
}

function swapped(mine: any, theirs: any, [name = '', ...rest]: string[]): any {
  if (Array.isArray(mine)) return mine.map((each, index) => swapped(each, theirs[index], [name, ...rest]))
  return { ...mine, [name]: rest.length === 0 ? theirs[name] : swapped(mine[name], theirs[name], rest) }
}
