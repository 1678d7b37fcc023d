import { Agent, request as httpRequest } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestRequest } from '../../support/request.ts'
import { percentile, range } from './statistics.ts'

export interface LoadResult {
  perSecond: number
  p50Ms: number
  p99Ms: number
  maxMs: number
}

interface Load {
  connections: number
  seconds: number
  /** Requests per second of all connections; without it, each connection sends as fast as it can. */
  rate?: number
}

/**
 * Sends one request repeatedly on each connection. With a rate, latency counts from the time at which a request was
 * due.
 */
export async function runLoad(url: string, request: TestRequest, { connections, seconds, rate }: Load) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const milliseconds: number[] = []
  const startedAtMs = performance.now()
  const endsAtMs = startedAtMs + seconds * 1000
  const intervalMs = rate === undefined ? 0 : (connections * 1000) / rate
  await Promise.all(
    range(connections).map(async (connection) => {
      let dueAtMs = startedAtMs + (connection / connections) * intervalMs
      while (dueAtMs < endsAtMs) {
        await delay(Math.max(0, dueAtMs - performance.now()))
        await exchange(`${url}${request.target}`, request, agent)
        milliseconds.push(performance.now() - dueAtMs)
        dueAtMs = rate === undefined ? performance.now() : dueAtMs + intervalMs
      }
    }),
  )
  agent.destroy()
  return summarise(milliseconds, (performance.now() - startedAtMs) / 1000)
}

export const summarise = (
  milliseconds: readonly number[],
  seconds = milliseconds.reduce((sum, each) => sum + each, 0) / 1000,
): LoadResult => ({
  perSecond: milliseconds.length / seconds,
  p50Ms: percentile(milliseconds, 0.5),
  p99Ms: percentile(milliseconds, 0.99),
  maxMs: percentile(milliseconds, 1),
})

function exchange(url: string, { method = 'GET', headers = {}, body }: TestRequest, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const outgoing = httpRequest(url, { method, headers, agent }, (response) => {
    const { statusCode = 0 } = response
    if (statusCode >= 300) reject(new Error(`${url} responded ${statusCode}.`))
    response.resume().on('end', resolve).on('error', reject)
  })
  outgoing.on('error', reject).end(body)
  return promise
}
