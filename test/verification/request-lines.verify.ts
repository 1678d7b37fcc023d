import { filesByFunction, routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { newSecret } from '@platform/core/id'
import type { GatewayHandler } from '@platform/http/response'
import type { HttpEvent } from '@platform/local/gateway/event'
import { createRouter, type GatewayRoute } from '@platform/local/gateway/routes'
import { afterAll, beforeAll, test, vi } from 'vitest'
import { handler as moduleGateway } from '../../functions/gateway/modules.ts'
import { operator } from '../functions/module-requests.ts'
import { sendBytes, startGateway } from '../local/gateway/support.ts'
import { type Instance, runInstance } from '../support/hostile-module.ts'
import { decodedPath, send } from '../support/request.ts'
import { ambiguousFraming, type RequestLine, requestLines } from './request-lines/lines.ts'
import { claimAtLeast, claimNone } from './support/claims.ts'
import { amount, isShort } from './support/run.ts'

// Requests to modules go directly to their instances. The setting is read when core is imported.
vi.hoisted(() => {
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
})

const gatewayRoutes: GatewayRoute[] = [
  ...routes.map(({ function: functionName, method, endpoint: { path } }) => ({ functionName, method, path })),
  ...modulePaths.paths.map((path) => ({ functionName: modulePaths.function, method: 'ANY', path })),
]

const loadHandler = async (name: string): Promise<[string, GatewayHandler]> => [
  name,
  (await import(`../../functions/${name}.ts`)).handler,
]

const [, token = ''] = operator.authorization.split(' ')
const forgedSecret = newSecret()
/** Credentials for the platform, and forged headers that only the platform may set. */
const headers: Readonly<Record<string, string>> = {
  authorization: `Bearer ${token}`,
  cookie: `__Host-plat_refresh=${forgedSecret}`,
  'proxy-authorization': `Basic ${forgedSecret}`,
  'x-api-key': forgedSecret,
  'x-platform-user': forgedSecret,
  'x-platform-token': forgedSecret,
  'x-forwarded-for': '203.0.113.9',
  forwarded: 'for=203.0.113.9',
  'x-real-ip': '203.0.113.9',
}
const removedHeaders = Object.keys(headers).filter((name) => !name.startsWith('x-platform-'))

let handlers: Map<string, GatewayHandler>
let module: Instance
let lines: readonly RequestLine[]

beforeAll(async () => {
  handlers = new Map(await Promise.all(Object.keys(filesByFunction).map(loadHandler))).set(
    modulePaths.function,
    moduleGateway,
  )
  module = await runInstance()
  lines = requestLines(module.moduleId).filter((_, index) => !isShort || index % 4 === 0)
})
afterAll(() => module[Symbol.asyncDispose]())

/**
 * Describes requests that reached the module outside its paths, or with headers that the platform must remove. Clears
 * the recorded requests.
 */
function moduleViolations(): string[] {
  const prefixes = [module.api, `/modules/${module.moduleId}`]
  return module.requests.splice(0).flatMap(({ url, headers: received }) => {
    const { pathname } = new URL(url, 'http://module')
    const isInside = prefixes.some((prefix) => url.startsWith(prefix) && `${pathname}/`.startsWith(`${prefix}/`))
    const text = JSON.stringify(received)
    const leakedHeaders =
      removedHeaders.some((name) => name in received) || text.includes(token) || text.includes(forgedSecret)
    return [...(isInside ? [] : [`${url} is outside of the module`]), ...(leakedHeaders ? [`${url} with ${text}`] : [])]
  })
}

test('a request line on a socket reaches only its own function or module', async () => {
  const headText = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  let servedBy = ''
  await using gateway = await startGateway(async (name, event: HttpEvent) => {
    const result = (await handlers.get(name)?.(event)) ?? { statusCode: 404 }
    if (result.statusCode < 400) servedBy = name
    return result
  }, gatewayRoutes)
  const misrouted: string[] = []
  const sendLine = async ({ method, target, allowed }: RequestLine, rest: string): Promise<void> => {
    const countBefore = module.requests.length
    servedBy = ''
    const text = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headText.join('')}${rest}`
    await sendBytes(gateway.url, text).catch(() => '')
    const destination = module.requests.length > countBefore ? 'module' : servedBy
    if (destination !== '' && destination !== allowed)
      misrouted.push(`${method} ${target} ${rest.slice(0, 40)}: ${destination}`)
  }
  for (const line of lines) await sendLine(line, '\r\n')
  const secondRequest = 'GET /api/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (const framing of ambiguousFraming)
    await sendLine({ method: 'POST', target: module.api, allowed: 'module' }, `${framing}${secondRequest}`)
  claimAtLeast('requests that reached the module', module.requests.length, amount(5, 1))
  claimNone('requests that reached another component', misrouted, lines.length + ambiguousFraming.length)
  claimNone('violations at the module', moduleViolations())
})

test('a request line in an event, decoded once or twice, reaches only its own function or module', async () => {
  const route = createRouter(gatewayRoutes, fallback.function)
  const misrouted: string[] = []
  let requests = 0
  for (const [name, handler] of handlers) {
    const selectedLines = lines.filter((_, index) => name === modulePaths.function || index % amount(1, 20) === 0)
    for (const { method, target, allowed } of selectedLines) {
      const decodedTarget = decodedPath(target)
      // API Gateway sends only paths that start with a slash, and sends the query separately.
      const targets = [target, ...(decodedTarget === target || decodedTarget.includes('?') ? [] : [decodedTarget])]
      for (const sentTarget of targets.filter((each) => !/^[^/?]/.test(each))) {
        requests++
        const countBefore = module.requests.length
        const { status } = await send(handler, { method, target: sentTarget, headers: { ...headers } })
        const isServed = status >= 200 && status < 400
        const destination = module.requests.length > countBefore ? 'module' : isServed ? name : ''
        // After the second decoding the path may be a valid path of this function.
        const isOwnPath =
          sentTarget !== target && route(method, decodedPath(sentTarget.split('?')[0] ?? '')).functionName === name
        if (destination === '' || destination === allowed || (destination === name && isOwnPath)) continue
        misrouted.push(`${name}: ${method} ${sentTarget} reached ${destination}`)
      }
    }
  }
  claimNone('requests that reached another component', misrouted, requests)
  claimNone('violations at the module', moduleViolations())
})
