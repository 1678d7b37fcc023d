import { join } from 'node:path'
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { bearer, registration } from '../support/tenant.ts'
import { fire, type Fired } from './autocannon.ts'
import { ask, startRunning } from './running.ts'

const sides = ['platform', 'floor'] as const
type Side = (typeof sides)[number]

interface Load {
  perSecond: number[]
  p50Ms: number[]
  p99Ms: number[]
}

/** Requests through the gateway of a whole platform, and through the same gateway to the floor. */
export async function measureThroughput({ isQuick }: Effort): Promise<Section> {
  const limits = { PLAT_LIMIT_API_PER_MINUTE: '1000000', PLAT_LIMIT_API_BURST: '1000000' }
  await using platform = await startRunning(limits, join(import.meta.dirname, 'functions'))
  const { url, accessToken } = platform
  const { id } = await ask(url, registration(accessToken))
  return await loadBoth({ url: `${url}/api/v1/clusters/${id}`, accessToken }, isQuick)
}

interface Target {
  url: string
  accessToken: string
}

const newLoad = (): Load => ({ perSecond: [], p50Ms: [], p99Ms: [] })

async function loadBoth(target: Target, isQuick: boolean): Promise<Section> {
  const [rounds, seconds] = isQuick ? [2, 2] : [4, 4]
  const loads = { platform: newLoad(), floor: newLoad() }
  for (const side of sides) await fireAt(target, side, 2)
  for (const _ of range(rounds)) {
    for (const side of shuffled(sides)) {
      const { requests, latency } = await fireAt(target, side, seconds)
      loads[side].perSecond.push(requests.average)
      loads[side].p50Ms.push(latency.p50)
      loads[side].p99Ms.push(latency.p99)
    }
  }
  return section(loads, `${rounds} rounds of ${seconds} s`)
}

async function fireAt({ url, accessToken }: Target, side: Side, seconds: number): Promise<Fired> {
  const headers = { ...bearer(accessToken), 'x-bench-side': side }
  const fired = await fire({ url, headers, connections: 8, seconds })
  if (fired.non2xx > 0 || fired.errors > 0 || fired['2xx'] === 0) throw new Error(`${side}: not all were answered.`)
  return fired
}

function section({ platform, floor }: Record<Side, Load>, effort: string): Section {
  const row = (name: string, { perSecond, p50Ms, p99Ms }: Load) => {
    const rate = ratios(perSecond, floor.perSecond)
    const times = [spread(p50Ms).median, spread(p99Ms).median, ratios(p99Ms, floor.p99Ms).median]
    return [name, spread(perSecond).median, rate.median, rate.min, rate.max, ...times]
  }
  // As multiples of the platform's, so that less is better.
  const slowdown = ratios(floor.perSecond, platform.perSecond).median
  return {
    title: 'One machine: reading one cluster over HTTP',
    notes: [
      `autocannon, 8 connections, ${effort} in random order, through one gateway to one thread pool; the floor's handler runs beside the platform's.`,
    ],
    columns: ['handler', 'requests/s', 'ratio, median', 'min', 'max', 'p50 ms', 'p99 ms', 'p99 ratio'],
    rows: [row('floor', floor), row('platform', platform)],
    goals: [
      hope(atMost('requests/s of the floor, × the platform', slowdown, 1 / 0.8)),
      hope(atMost('p99 of the platform, × floor', ratios(platform.p99Ms, floor.p99Ms).median, 1.4)),
    ],
  }
}
