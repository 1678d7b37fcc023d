export interface OpenApi {
  openapi: string
  paths: Record<string, Record<string, OperationObject>>
}

interface OperationObject {
  operationId: string
  security?: Record<string, unknown>[]
  'x-permission'?: string
  parameters?: { in: string; name: string; schema: Schema }[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, ResponseObject | Reference>
}

export interface ResponseObject {
  description: string
  headers?: Record<string, HeaderObject | Reference>
  content?: Record<string, { schema?: unknown }>
}

export interface HeaderObject {
  required?: boolean
  schema: Schema
}

export interface Reference {
  $ref: string
}

export interface Schema {
  [keyword: string]: any
}

export interface Operation extends OperationObject {
  method: string
  template: string
}

export const isReference = (value: object): value is Reference => '$ref' in value

export const pointer = (...names: string[]): string =>
  `#/${names.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`

export function resolve<Value extends object>(document: OpenApi, value: Value | Reference): Value {
  if (!isReference(value)) return value
  const names = value.$ref.split('/').slice(1)
  const target = names.reduce<any>((place, name) => place?.[name.replaceAll('~1', '/')], document)
  return resolve<Value>(document, target)
}

/** Returns all operations, sorted by their number of path parameters, because gateways prefer fixed paths. */
export const operationsOf = ({ paths }: OpenApi): Operation[] =>
  Object.entries(paths)
    .flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), template })),
    )
    .toSorted((a, b) => a.template.split('{').length - b.template.split('{').length)

export const operationOf = (operations: readonly Operation[], method: string, path: string): Operation | undefined =>
  operations.find(
    (operation) => operation.method === method && matchesTemplate(operation.template, path.split('?', 1)[0] ?? ''),
  )

function matchesTemplate(template: string, path: string): boolean {
  const [expected, actual] = [template.split('/'), path.split('/')]
  const isMatch = (part: string, index: number) =>
    part.startsWith('{') ? actual[index] !== '' : part === actual[index]
  return expected.length === actual.length && expected.every(isMatch)
}
