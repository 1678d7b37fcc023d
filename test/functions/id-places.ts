import { type ApiDocument, parametersOf, type Schema } from '@platform/contract/docs/document'
import { openApiDocument } from '@platform/contract/openapi'
import type { RequestParts } from './fixtures.ts'
import type { Operation } from './operations.ts'

/** Places of resource ids in requests: `params.id`, `query.filterId`, `body.jobs.clusterId`. */

const document = JSON.parse(JSON.stringify(openApiDocument({}))) as ApiDocument

/** Not ids, or ids that the platform did not issue. */
const externalIds = new Set(['widgetId', 'tenantId', 'clientId', 'includeIds'])

const isId = (name: string): boolean => /^(ids?|actor)$|Ids?$/.test(name) && !externalIds.has(name)

/** `resource` is an id in a query, and free text in a body. */
const isIdParameter = (name: string): boolean => name === 'resource' || isId(name)

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (document.components.schemas[name] ?? {})
}

function placesIn(reference: Schema, place: string): string[] {
  const schema = resolve(reference)
  const choices = (schema.anyOf ?? []).flatMap((choice) => placesIn(choice, place))
  const items = schema.items ? placesIn(schema.items, place) : []
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    isId(name) ? [`${place}.${name}`] : placesIn(member ?? {}, `${place}.${name}`),
  )
  return [...choices, ...items, ...members]
}

export function idPlaces({ endpoint }: Operation): string[] {
  const operation = document.paths[endpoint.path]?.[endpoint.method]
  const ids = (operation ? parametersOf(document, operation) : []).filter(
    (parameter) => parameter.in !== 'header' && isIdParameter(parameter.name),
  )
  const parameters = ids.map((parameter) => `${parameter.in === 'path' ? 'params' : parameter.in}.${parameter.name}`)
  const body = operation?.requestBody?.content['application/json']?.schema
  return [...parameters, ...(body ? placesIn(body, 'body') : [])]
}

export function valueAt(parts: RequestParts, place: string): unknown {
  let value: any = parts
  for (const name of place.split('.')) value = (Array.isArray(value) ? value[0] : value)?.[name]
  return value
}

/**
 * Replaces the value at a place with the value of another request. If the place is in the query, removes the other
 * parameters of the query, which could hide the effect of the value.
 */
export function withValueOf(parts: RequestParts, otherParts: RequestParts, place: string): RequestParts {
  const { query: _, ...rest } = parts
  return replace(place.startsWith('query.') ? rest : parts, otherParts, place.split('.'))
}

function replace(value: any, otherValue: any, [name = '', ...rest]: string[]): any {
  if (Array.isArray(value)) return value.map((each, index) => replace(each, otherValue[index], [name, ...rest]))
  return { ...value, [name]: rest.length === 0 ? otherValue[name] : replace(value[name], otherValue[name], rest) }
}
