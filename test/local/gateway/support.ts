import { once } from 'node:events'
import { type BlockList, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { ErrorBody } from '@platform/contract/common'
import type { HttpEvent } from '@platform/local/gateway/event'
import type { Invoke } from '@platform/local/gateway/exchange'
import { createRouter, type GatewayRoute } from '@platform/local/gateway/routes'
import { listen } from '@platform/local/gateway/server'
import { createMetrics } from '@platform/local/metrics/metrics'

export const sampleRoutes: GatewayRoute[] = [
  { functionName: 'things', method: 'GET', path: '/things' },
  { functionName: 'things', method: 'POST', path: '/things' },
  { functionName: 'things', method: 'GET', path: '/things/{id}' },
  { functionName: 'remove', method: 'DELETE', path: '/things/{id}' },
  { functionName: 'catalog', method: 'GET', path: '/things/catalog' },
  { functionName: 'parts', method: 'GET', path: '/things/{thingId}/parts/{partId}' },
  { functionName: 'more', method: 'ANY', path: '/things/{id}/more/{proxy+}' },
  { functionName: 'any', method: 'ANY', path: '/any/{proxy+}' },
  { functionName: 'posted', method: 'POST', path: '/any/{proxy+}' },
  { functionName: 'full', method: 'ANY', path: '/any/full' },
  { functionName: 'deep', method: 'ANY', path: '/any/deep/{proxy+}' },
]

export const privateMetrics = { begin: createMetrics(1).begin, scrape: async () => undefined }

export async function startGateway(invoke: Invoke, routes = sampleRoutes, trustedProxies?: BlockList) {
  const gateway = await listen('127.0.0.1', 0)
  const logEntries: { message: string; details: Record<string, unknown> }[] = []
  const log = (message: string, details: Record<string, unknown> = {}) => void logEntries.push({ message, details })
  const route = createRouter(routes, 'fallback')
  gateway.open({ route, invoke, trustedProxies, log, metrics: privateMetrics })
  return { ...gateway, logged: logEntries, [Symbol.asyncDispose]: () => gateway.drain(0) }
}

export async function startRecorder(routes = sampleRoutes, trustedProxies?: BlockList) {
  const invocations: { functionName: string; event: HttpEvent }[] = []
  const gateway = await startGateway(
    async (functionName, event) => {
      if (event.isBodyPending) return { statusCode: 100, headers: { 'x-body-limit': '4194304' } }
      invocations.push({ functionName, event })
      return { statusCode: 204 }
    },
    routes,
    trustedProxies,
  )
  const lastInvocation = () => {
    const invocation = invocations.at(-1)
    if (invocation === undefined) throw new Error('The function was not invoked.')
    return invocation
  }
  return { ...gateway, invocations, last: lastInvocation }
}

/** Sends bytes unchanged, and reads until the gateway closes the connection. */
export async function sendBytes(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes, 'latin1')
  return text(socket)
}

export const sendTarget = (url: string, target: string, method = 'GET') =>
  sendBytes(url, `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)

export function errorOf(response: string) {
  const [head = '', body = ''] = response.split('\r\n\r\n')
  const status = Number(head.split(' ')[1])
  const traceId = /^x-trace-id: (.*)$/im.exec(head)?.[1]
  return { status, headerTraceId: traceId, ...ErrorBody.parse(JSON.parse(body)) }
}

export async function openConnection(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket
}
