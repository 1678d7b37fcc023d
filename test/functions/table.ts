import { bodySchemaOf, type EndpointDefinition } from '@platform/contract/endpoint'
import { type FunctionName, functions, routes } from '@platform/contract/index'
import { newId } from '@platform/core/id'
import type { GatewayHandler } from '@platform/http/response'
import type { TestRequest } from '../support/request.ts'

/** The route table with the functions that serve it, for suites that ask the same of every endpoint. */

const names = Object.keys(functions) as FunctionName[]
const loaded = names.map(async (name): Promise<[FunctionName, GatewayHandler]> => {
  const module = (await import(`../../functions/${name}.ts`)) as { handler: GatewayHandler }
  return [name, module.handler]
})
const handlers = new Map(await Promise.all(loaded))

export const handlerOf = (name: FunctionName): GatewayHandler => {
  const handler = handlers.get(name)
  if (handler === undefined) throw new Error(`There is no function ${name}.`)
  return handler
}

/** One endpoint in its place. */
export interface Row {
  name: string
  method: string
  endpoint: EndpointDefinition
  handler: GatewayHandler
}

export const rows: Row[] = routes.map(({ function: name, method, endpoint }) => ({
  name: `${method} ${endpoint.path}`,
  method,
  endpoint,
  handler: handlerOf(name),
}))

export function rowNamed(name: string): Row {
  const row = rows.find((each) => each.name === name)
  if (row === undefined) throw new Error(`There is no operation ${name}.`)
  return row
}

export const isProtected = ({ endpoint }: Row): boolean => endpoint.access !== 'public'
export const takesBody = ({ endpoint }: Row): boolean => bodySchemaOf(endpoint) !== undefined

/** A path with something in place of each parameter, percent-encoded. */
export const withParameters = (path: string, valueOf: (name: string) => string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(valueOf(name)))

/** A request to an endpoint about something that does not exist. */
export const requestTo = ({ method, endpoint }: Row, headers: Record<string, string> = {}): TestRequest => ({
  method,
  target: withParameters(endpoint.path, () => newId('job')),
  headers,
})
