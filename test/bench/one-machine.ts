import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { jsonRequest, type TestRequest } from '../support/request.ts'
import { options, PlatformProcess } from '../support/platform.ts'
import { withoutRateLimits } from './support/emulators.ts'
import { type LoadResult, runLoad, summarise } from './support/load.ts'
import {
  batchRequest,
  batchSize,
  enrollRelay,
  fetchJson,
  fillBatch,
  getRequest,
  heartbeatRequest,
  jobRequest,
} from './support/requests.ts'
import { atMost, type Effort, type Section, asTarget } from './support/section.ts'
import { range, ratios, spread } from './support/statistics.ts'

/** The default settings of the platform, except rate limits. `PlatformProcess` overrides these settings in tests. */
export const platformDefaults = {
  ...withoutRateLimits,
  PLAT_HEARTBEAT_INTERVAL_SECONDS: '30',
  PLAT_SWEEP_INTERVAL_SECONDS: '60',
  PLAT_OUTBOX_RETRY_SECONDS: '30',
  PLAT_LOG_LEVEL: 'info',
  PLAT_VALIDATE_RESPONSES: '0',
}

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now()
  await work()
  return performance.now() - startedAtMs
}

export async function* measureStart({ isQuick }: Effort): AsyncGenerator<Section> {
  const platformMs: number[] = []
  const emptyMs: number[] = []
  for (const _ of range(isQuick ? 2 : 5)) {
    emptyMs.push(await durationOf(() => once(spawn(process.execPath, ['-e', '0']), 'exit')))
    await using stack = new AsyncDisposableStack()
    platformMs.push(await durationOf(async () => stack.use(await PlatformProcess.start(platformDefaults))))
  }
  const ratio = ratios(platformMs, emptyMs)
  yield {
    title: 'One machine: start',
    columns: ['program', 'ms', '× node -e 0', 'min', 'max'],
    rows: [
      ['node -e 0', spread(emptyMs).median, 1, '', ''],
      ['npm start', spread(platformMs).median, ratio.median, ratio.min, ratio.max],
    ],
    goals: [asTarget(atMost('start of the platform, × node -e 0', ratio.median, 50))],
  }
}

export async function* measureLatency({ isQuick }: Effort): AsyncGenerator<Section> {
  await using platform = await PlatformProcess.start(platformDefaults)
  const { url } = platform
  await platform.setUp()
  const signIn = jsonRequest('/api/v1/auth/login', options)
  const { accessToken } = await fetchJson(url, signIn)
  const newRelay = () => enrollRelay((_name, request) => fetchJson(url, request), accessToken)
  const { clusterId } = await newRelay()
  const seconds = isQuick ? 4 : 15
  const measure = (request: TestRequest, rate: number) =>
    runLoad(url, request, { connections: Math.ceil(rate / 10), seconds, rate })
  const reading = getRequest(`/api/v1/clusters/${clusterId}`, accessToken)
  const measureDuringFlood = async () => {
    const flood = runLoad(url, signIn, { connections: 10, seconds })
    return (await Promise.all([measure({ target: '/health/live' }, 20), flood]))[0]
  }
  const rows: [request: string, rate: string, result: LoadResult, p99LimitMs: number][] = [
    ['GET /clusters/{id}', '200/s', await measure(reading, 200), 50],
    ['GET /clusters/{id}', 'maximum', await runLoad(url, reading, { connections: 8, seconds }), 50],
    ['POST /auth/login', '10/s', await measure(signIn, 10), 400],
    ['GET /health/live, during a flood of sign-ins', '20/s', await measureDuringFlood(), 20],
  ]
  const batchMs: number[] = []
  const claimableMs: number[] = []
  for (const _ of range(isQuick ? 1 : 5)) {
    const relay = await newRelay()
    const batch = batchRequest(accessToken, fillBatch([relay.clusterId]))
    batchMs.push(await durationOf(() => fetchJson(url, batch)))
    const claimable = async () =>
      (await fetchJson(url, await heartbeatRequest(relay, { freeSlots: batchSize }))).jobs.length
    claimableMs.push(
      await durationOf(async () => {
        while ((await claimable()) < batchSize) await delay(25)
      }),
    )
  }
  rows.push(['POST /jobs/batch, 500 jobs', 'one at a time', summarise(batchMs), 2500])
  rows.push(['until the 500 jobs are claimable', '', summarise(claimableMs), 5000])
  rows.push(['POST /jobs', '100/s', await measure(jobRequest(accessToken, clusterId), 100), 100])
  yield {
    title: 'One machine: latency',
    columns: ['request', 'rate', 'requests/s', 'p50 ms', 'p99 ms', 'max ms', 'p99 goal'],
    rows: rows.map(([name, rate, result, limitMs]) => [name, rate, ...Object.values(result), limitMs]),
    goals: rows.map(([name, rate, { p99Ms }, limitMs]) =>
      asTarget(atMost(`${name}, ${rate}: p99, ms`, p99Ms, limitMs)),
    ),
  }
}
