import { functions, routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { newSecret } from '@platform/core/id'
import type { GatewayHandler } from '@platform/http/response'
import type { HttpEvent } from '@platform/local/gateway/event'
import { createRouter, type GatewayRoute } from '@platform/local/gateway/routes'
import { ada } from '../../functions/module-traffic.ts'
import { sendBytes, startGateway } from '../../local/gateway/support.ts'
import { decodedPath, send } from '../../support/request.ts'
import { type Instance, runInstance } from '../../support/hostile-module.ts'
import { atLeast, type Effort, type Figure, none } from '../part.ts'
import { type Line, linesFor, smuggled } from './lines.ts'
import { type Arrivals, judgeModule, newArrivals, note } from './reached.ts'

/** The routes of the one-machine platform. */
const gatewayRoutes: readonly GatewayRoute[] = [
  ...routes.map(({ function: functionName, method, endpoint: { path } }) => ({ functionName, method, path })),
  ...modulePaths.paths.map((path) => ({ functionName: modulePaths.function, method: 'ANY', path })),
]

/** All but the portal: its page is the same for everybody. */
const names = [...Object.keys(functions), modulePaths.function]

async function loadedHandlers(): Promise<ReadonlyMap<string, GatewayHandler>> {
  const loaded = names.map(async (name): Promise<[string, GatewayHandler]> => [
    name,
    (await import(`../../../functions/${name}.ts`)).handler,
  ])
  return new Map(await Promise.all(loaded))
}

const [token = ''] = ada.authorization.split(' ').slice(1)
const forged = newSecret()
/** Headers that are nobody's business but the platform's, and forgeries of those that it tells modules. */
const headers: Readonly<Record<string, string>> = {
  authorization: `Bearer ${token}`,
  cookie: `__Host-plat_refresh=${forged}`,
  'proxy-authorization': `Basic ${forged}`,
  'x-api-key': forged,
  'x-platform-user': forged,
  'x-platform-token': forged,
  'x-forwarded-for': '203.0.113.9',
  forwarded: 'for=203.0.113.9',
  'x-real-ip': '203.0.113.9',
}
const headText = Object.entries(headers)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** By sockets through the gateway of one machine, byte by byte as they stand. */
async function overSockets(lines: readonly Line[], module: Instance, arrivals: Arrivals): Promise<void> {
  const handlers = await loadedHandlers()
  let [functionName, isSuccess] = ['', false]
  await using gateway = await startGateway(
    async (name, event: HttpEvent) => {
      functionName = name
      const result = (await handlers.get(name)?.(event)) ?? { statusCode: 404 }
      isSuccess = result.statusCode < 400
      return result
    },
    [...gatewayRoutes],
  )
  const ask = async (line: Line, rest: string): Promise<void> => {
    const before = module.requests.length
    ;[functionName, isSuccess] = ['', false]
    const text = `${line.method} ${line.target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headText}${rest}`
    await sendBytes(gateway.url, text).catch(() => '')
    const seen = { status: isSuccess ? 200 : 400, functionName, byModule: module.requests.length - before }
    note(line, seen, `by a socket${rest === '\r\n' ? '' : ` with ${JSON.stringify(rest.slice(0, 40))}`}`, arrivals)
  }
  for (const line of lines) await ask(line, '\r\n')
  const second = 'GET /api/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n'
  // What follows a request that is read differently may be another request, but one without a token.
  for (const rest of smuggled) await ask({ method: 'POST', target: module.api, may: 'module' }, `${rest}${second}`)
}

/** As events, at every function that a gateway might lead them to; with the path decoded once, as gateways do it, and twice. */
async function asEvents(lines: readonly Line[], module: Instance, every: number, arrivals: Arrivals): Promise<void> {
  const route = createRouter(gatewayRoutes, fallback.function)
  for (const [name, handler] of await loadedHandlers()) {
    const isGateway = name === modulePaths.function
    for (const line of lines.filter((_, index) => isGateway || index % every === 0)) {
      for (const target of new Set([line.target, decodedPath(line.target)])) {
        // API Gateway makes no event of a path without a slash, and a query is no part of it.
        const isPath = !/^[^/?]/.test(target) && (target === line.target || !target.includes('?'))
        if (!isPath) continue
        const before = module.requests.length
        const { status } = await send(handler, { method: line.method, target, headers: { ...headers } })
        const path = decodedPath(target.split('?')[0] ?? '')
        // Decoded twice it may be another path, which leads where it says.
        const isOwn = route(line.method, path).functionName === name
        const may = isOwn && target !== line.target ? name : line.may
        const seen = { status, functionName: name, byModule: module.requests.length - before }
        note({ ...line, may: seen.byModule > 0 ? line.may : may }, seen, `as an event for ${name}`, arrivals)
      }
    }
  }
}

const sentOf = ({ sent }: Arrivals): string => sent.toLocaleString('en')

export async function figuresOf({ isShort, say }: Effort): Promise<Figure[]> {
  await using module = await runInstance()
  const lines = linesFor(module.moduleId).filter((_, index) => !isShort || index % 4 === 0)
  const [sockets, events] = [newArrivals(), newArrivals()]
  const secrets = [token, forged]
  await overSockets(lines, module, sockets)
  const byModule = module.requests.length
  judgeModule(module, secrets, sockets)
  await asEvents(lines, module, isShort ? 20 : 1, events)
  judgeModule(module, secrets, events)
  for (const line of [sockets, events].flatMap(({ foreign, leaked }) => [...foreign, ...leaked])) say(line)
  return [
    atLeast('request lines', lines.length + smuggled.length, 40),
    atLeast('request lines that the module was asked by', byModule, isShort ? 1 : 5),
    none('requests by sockets that arrive where they may not', sockets.foreign.length, sentOf(sockets)),
    none('requests as events that arrive where they may not', events.foreign.length, sentOf(events)),
    none(
      'requests to the module with credentials or forged words of the platform',
      sockets.leaked.length + events.leaked.length,
    ),
  ]
}
