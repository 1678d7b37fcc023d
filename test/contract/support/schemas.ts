import {
  type ApiDocument,
  type MediaType,
  type Operation,
  resolveSchema,
  type Schema,
  typeOf,
} from '@platform/contract/docs/document'

type Found = readonly [where: string, schema: Schema]

function inside([where, schema]: Found): Found[] {
  const properties = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property ? [[`${where}.${name}`, property] as const] : [],
  )
  const items = schema.items ? [[`${where}[]`, schema.items] as const] : []
  const choices = [...(schema.anyOf ?? []), ...(schema.allOf ?? [])].map(
    (choice, index) => [`${where}|${index}`, choice] as const,
  )
  return [...properties, ...items, ...choices]
}

const walk = (found: Found): Found[] => [found, ...inside(found).flatMap(walk)]

export const schemasOf = (document: ApiDocument): Found[] => [
  ...Object.entries(document.components.schemas).flatMap(walk),
  ...[document.paths, document.webhooks ?? {}]
    .flatMap(Object.entries<Partial<Record<string, Operation>>>)
    .flatMap(([path, methods]) =>
      Object.values(methods).flatMap((operation) =>
        operation ? mediaOf(operation).flatMap(({ schema }) => (schema ? walk([path, schema]) : [])) : [],
      ),
    ),
]

/** Returns the bodies of an operation, except those of responses that several operations share. */
export const mediaOf = ({ requestBody, responses }: Operation): MediaType[] =>
  [requestBody, ...Object.values(responses)].flatMap((body) =>
    body && 'content' in body ? Object.values(body.content ?? {}).filter((media) => media !== undefined) : [],
  )

/** Returns the properties without a description of their own or of their component. */
export const findUndescribed = (document: ApiDocument): string[] =>
  schemasOf(document).flatMap(([where, { properties = {} }]) =>
    Object.entries(properties)
      .filter(([, property]) => property && resolveSchema(document, property).description === undefined)
      .map(([name]) => `${where}.${name}`),
  )

/** Whether a schema is a string, an array or an integer without an upper limit. Enums and constants are limited. */
export const isUnbounded = ([, schema]: Found): boolean => {
  if (schema.enum || schema.const !== undefined) return false
  const type = typeOf(schema)
  if (type === 'string') return schema.maxLength === undefined
  if (type === 'array') return schema.maxItems === undefined
  return type === 'integer' && schema.maximum === undefined
}
