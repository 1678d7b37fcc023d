import { type ApiDocument, type Schema, typeOf } from '@platform/contract/docs/document'

type Found = readonly [where: string, schema: Schema]

function inside([where, schema]: Found): Found[] {
  const properties = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property ? [[`${where}.${name}`, property] as const] : [],
  )
  const items = schema.items ? [[`${where}[]`, schema.items] as const] : []
  const choices = (schema.anyOf ?? []).map((choice, index) => [`${where}|${index}`, choice] as const)
  return [...properties, ...items, ...choices]
}

const walk = (found: Found): Found[] => [found, ...inside(found).flatMap(walk)]

export const schemasOf = (document: ApiDocument): Found[] => [
  ...Object.entries(document.components.schemas).flatMap(walk),
  ...Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).flatMap((operation) =>
      Object.entries(operation?.responses ?? {}).flatMap(([status, response]) => {
        const schema = 'content' in response ? response.content?.['application/json']?.schema : undefined
        return schema ? walk([`${path} ${status}`, schema]) : []
      }),
    ),
  ),
]

/** Strings, arrays and integers without an upper limit. */
export const isUnbounded = ([, schema]: Found): boolean => {
  if (schema.enum) return false
  const type = typeOf(schema)
  if (type === 'string') return schema.maxLength === undefined
  if (type === 'array') return schema.maxItems === undefined
  return type === 'integer' && schema.maximum === undefined
}
