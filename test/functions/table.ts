import type { EndpointDefinition } from '@platform/contract/endpoint'
import { type FunctionName, functions, routes } from '@platform/contract/index'
import { isPermission } from '@platform/contract/permission'
import { newId } from '@platform/core/id'
import type { GatewayHandler } from '@platform/http/event'
import type { Sent } from '../support/event.ts'

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
  endpoint: EndpointDefinition
  handler: GatewayHandler
}

export const rows: Row[] = routes.map(({ function: name, endpoint }) => ({
  name: `${endpoint.method} ${endpoint.path}`,
  endpoint,
  handler: handlerOf(name),
}))

export const isProtected = ({ endpoint }: Row): boolean => endpoint.access !== 'public'
export const needsPermission = ({ endpoint }: Row): boolean => isPermission(endpoint.access)
export const takesBody = ({ endpoint }: Row): boolean => endpoint.request?.body !== undefined

/** A request to an endpoint about something that does not exist. */
export const requestTo = ({ endpoint }: Row, headers: Record<string, string> = {}): Sent => ({
  method: endpoint.method,
  target: endpoint.path.replace('{id}', newId('job')),
  headers,
})
