import { setTimeout as delay } from 'node:timers/promises'
import type { GatewayHandler } from '@platform/http/response'
import { handler as auth } from '../../../functions/auth.ts'
import { handler as clusters } from '../../../functions/clusters.ts'
import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as relay } from '../../../functions/relay.ts'
import { handler as setup } from '../../../functions/setup.ts'
import { jsonRequest, send, type TestRequest } from '../../support/request.ts'

const handlers = { auth, clusters, jobs, relay, setup } as const satisfies Record<string, GatewayHandler>

export interface Call {
  function: keyof typeof handlers
  sent: TestRequest
  afterMs?: number
  refreshes?: number
}

export interface Response {
  status: number
  json: any
  beganUs: number
  endedUs: number
}

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n)

async function call(name: Call['function'], sent: TestRequest): Promise<Response> {
  const beganUs = nowUs()
  const { status, json } = await send(handlers[name], sent)
  return { status, json, beganUs, endedUs: nowUs() }
}

async function make({ function: name, sent, afterMs = 0, refreshes = 0 }: Call): Promise<Response[]> {
  if (afterMs > 0) await delay(afterMs)
  const responses = [await call(name, sent)]
  for (let count = 0; count < refreshes; count++) {
    const { status, json } = responses.at(-1) ?? {}
    if (status !== 200) break
    responses.push(await call('auth', jsonRequest('/api/v1/auth/refresh', { refreshToken: json.refreshToken })))
  }
  return responses
}

process.on('message', (calls: Call[]) => {
  void Promise.all(calls.map(make)).then((responses) => process.send?.(responses))
})
process.on('disconnect', () => process.exit())
