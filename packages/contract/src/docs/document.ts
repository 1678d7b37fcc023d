/** The fields of an OpenAPI 3.1 document that the reference page uses. */
export interface ApiDocument {
  info: { title: string; version: string; description?: string }
  tags: readonly { name: string; description?: string }[]
  paths: Record<string, Partial<Record<string, Operation>>>
  webhooks?: Record<string, { post: Operation }>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Response>
    parameters?: Record<string, Parameter>
    securitySchemes: Record<string, { scheme?: string; description?: string }>
  }
}

export interface Operation {
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  security?: readonly Partial<Record<string, readonly string[]>>[]
  parameters?: readonly (Parameter | Reference)[]
  requestBody?: { content: MediaTypes }
  responses: Record<string, Response | Reference>
  'x-codeSamples'?: readonly { label: string; source: string }[]
}

export interface Parameter {
  in: string
  name: string
  required?: boolean
  description?: string
  schema: Schema
}

export interface Response {
  headers?: Record<string, unknown>
  description: string
  content?: MediaTypes
}

export interface MediaType {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

export type MediaTypes = Partial<Record<string, MediaType>>

export interface Reference {
  $ref: string
}

export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  format?: string
  description?: string
  example?: unknown
  examples?: readonly unknown[]
  const?: unknown
  default?: unknown
  enum?: readonly unknown[]
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  items?: Schema
  properties?: Partial<Record<string, Schema>>
  required?: readonly string[]
  anyOf?: readonly Schema[]
  allOf?: readonly Schema[]
}

export interface Entry {
  method: string
  path: string
  operation: Operation
}

export const entriesOf = ({ paths }: ApiDocument): Entry[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      operation ? [{ method: method.toUpperCase(), path, operation }] : [],
    ),
  )

/** Returns the types of a schema as a list. */
export const typesOf = ({ type = [] }: Schema): readonly string[] => [type].flat()

/** Returns the first type of a schema other than `null`. */
export const typeOf = (schema: Schema): string | undefined => typesOf(schema).find((type) => type !== 'null')

/** Returns the component name at the end of a `$ref`. */
export const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1)

/** Resolves the reference of a schema. Members beside the reference take precedence. */
export function resolveSchema(document: ApiDocument, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  return { ...document.components.schemas[nameOf(schema.$ref)], ...schema }
}

/** Resolves the reference of a response. */
export function responseOf(document: ApiDocument, response: Response | Reference): Response {
  if (!('$ref' in response)) return response
  return document.components.responses[nameOf(response.$ref)] ?? { description: '' }
}

/** Returns the parameters of an operation with resolved references. */
export const parametersOf = (
  { components }: ApiDocument,
  { parameters = [] }: Pick<Operation, 'parameters'>,
): Parameter[] =>
  parameters.flatMap((parameter) =>
    '$ref' in parameter ? (components.parameters?.[nameOf(parameter.$ref)] ?? []) : parameter,
  )

export const jsonOf = (content: MediaTypes | undefined): MediaType | undefined => content?.['application/json']

export const jsonSchemaOf = (content: MediaTypes | undefined): Schema | undefined => jsonOf(content)?.schema
