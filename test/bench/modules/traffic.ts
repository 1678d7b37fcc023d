import { randomBytes } from 'node:crypto'
import { callInstance } from '@platform/worker/runtimes/instance-request'
import { ask, startRunning } from '../one-machine/running.ts'
import { atMost, type Effort, type Goal, type Section } from '../support/section.ts'
import { percentile, range, ratios, shuffled } from '../support/statistics.ts'
import { getting } from '../support/tenant.ts'
import { startHello } from './hello.ts'
import { install } from './installing.ts'

const sides = ['direct', 'me', 'gateway'] as const
type Side = (typeof sides)[number]
type Asks = Record<Side, () => Promise<unknown>>

/** Times of all requests of one side, and the p50 of each round. */
interface Times {
  allMs: number[]
  p50Ms: number[]
}

const limits = { timeoutMs: 10_000, maxBytes: 1_000_000 }
/** So many wait for an answer at once. */
const widths = [1, 10]

/** A request to a module through the gateway, against one to a module's own socket and one that the platform answers. */
export async function measureTraffic({ isQuick }: Effort): Promise<Section> {
  const [rounds, requests] = isQuick ? [2, 50] : [9, 300]
  const settings = { PLAT_LIMIT_API_PER_MINUTE: '1000000', PLAT_LIMIT_API_BURST: '1000000' }
  const token = randomBytes(32).toString('base64url')
  await using hello = await startHello(token)
  await using platform = await startRunning({ ...settings, PLAT_MODULE_ISOLATION: 'process' })
  await install(platform)
  const { url, accessToken } = platform
  const asks: Asks = {
    direct: () => callInstance(hello.socket, token, { method: 'GET', path: '/api/hello' }, limits).then(isGreeting),
    me: () => ask(url, getting('/api/v1/auth/me', accessToken)),
    gateway: () => ask(url, getting('/api/hello', accessToken)),
  }
  const [rows, goals]: [Section['rows'], Goal[]] = [[], []]
  for (const width of widths) {
    const times = await timesOf(asks, width, rounds, requests)
    rows.push(...rowsOf(width, times))
    const ratio = ratios(times.gateway.p50Ms, times.me.p50Ms).median
    goals.push(atMost(`GET /api/hello, ${width} at once, p50, × GET /auth/me`, ratio, 1.5))
  }
  return {
    title: 'One machine: a request to a module',
    columns: ['request', 'at once', 'p50 ms', 'p95 ms', '× /auth/me', '× direct', 'ms more than direct, p50'],
    rows,
    goals,
  }
}

function isGreeting({ status }: { status: number }): void {
  if (status !== 200) throw new Error(`The reference module answered ${status}.`)
}

const newTimes = (): Times => ({ allMs: [], p50Ms: [] })

async function timesOf(asks: Asks, width: number, rounds: number, requests: number): Promise<Record<Side, Times>> {
  const times = { direct: newTimes(), me: newTimes(), gateway: newTimes() }
  for (const side of sides) await volley(asks[side], width, requests)
  for (const _ of range(rounds)) {
    for (const side of shuffled(sides)) {
      const ms = await volley(asks[side], width, requests)
      times[side].allMs.push(...ms)
      times[side].p50Ms.push(percentile(ms, 0.5))
    }
  }
  return times
}

/** Asks again and again, so many at once; answers what each request took. */
async function volley(askOnce: () => Promise<unknown>, width: number, requests: number): Promise<number[]> {
  const ms: number[] = []
  const line = async () => {
    for (const _ of range(requests / width)) {
      const startedAtMs = performance.now()
      await askOnce()
      ms.push(performance.now() - startedAtMs)
    }
  }
  await Promise.all(range(width).map(line))
  return ms
}

const names: Record<Side, string> = {
  direct: 'GET /api/hello, direct',
  me: 'GET /auth/me',
  gateway: 'GET /api/hello, through the gateway',
}

function rowsOf(width: number, times: Record<Side, Times>): Section['rows'] {
  const { direct, me } = times
  return sides.map((side) => {
    const { allMs, p50Ms } = times[side]
    const [overMe, overDirect] = [ratios(p50Ms, me.p50Ms).median, ratios(p50Ms, direct.p50Ms).median]
    const more = percentile(allMs, 0.5) - percentile(direct.allMs, 0.5)
    return [names[side], width, percentile(allMs, 0.5), percentile(allMs, 0.95), overMe, overDirect, more]
  })
}
