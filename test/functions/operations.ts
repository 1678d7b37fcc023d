import { bodySchemaOf, type EndpointDefinition } from '@platform/contract/endpoint'
import { type FunctionName, filesByFunction, routes } from '@platform/contract/index'
import { newId } from '@platform/core/id'
import type { GatewayHandler } from '@platform/http/response'
import type { TestRequest } from '../support/request.ts'

const names = Object.keys(filesByFunction) as FunctionName[]
const handlers = new Map(
  await Promise.all(
    names.map(async (name): Promise<[FunctionName, GatewayHandler]> => {
      const module = (await import(`../../functions/${name}.ts`)) as { handler: GatewayHandler }
      return [name, module.handler]
    }),
  ),
)

export function handlerOf(name: FunctionName): GatewayHandler {
  const handler = handlers.get(name)
  if (handler === undefined) throw new Error(`Unknown function ${name}.`)
  return handler
}

export interface Operation {
  name: string
  method: string
  endpoint: EndpointDefinition
  handler: GatewayHandler
}

export const operations: Operation[] = routes.map(({ function: name, method, endpoint }) => ({
  name: `${method} ${endpoint.path}`,
  method,
  endpoint,
  handler: handlerOf(name),
}))

export function operationNamed(name: string): Operation {
  const operation = operations.find((each) => each.name === name)
  if (operation === undefined) throw new Error(`Unknown operation ${name}.`)
  return operation
}

export const isProtected = ({ endpoint }: Operation): boolean => endpoint.access !== 'public'
export const takesBody = ({ endpoint }: Operation): boolean => bodySchemaOf(endpoint) !== undefined

export const withParameters = (path: string, valueOf: (name: string) => string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(valueOf(name)))

export const requestTo = ({ method, endpoint }: Operation, headers: Record<string, string> = {}): TestRequest => ({
  method,
  target: withParameters(endpoint.path, () => newId('job')),
  headers,
})
