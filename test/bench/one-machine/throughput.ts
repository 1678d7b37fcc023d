import { join } from 'node:path'
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { peerNames } from '../support/peers.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { bearer, registration } from '../support/tenant.ts'
import { fire, type Fired } from './autocannon.ts'
import { ask, startRunning } from './running.ts'

const sides = ['floor', 'platform', ...peerNames] as const
type Side = (typeof sides)[number]

interface Load {
  perSecond: number[]
  p50Ms: number[]
  p99Ms: number[]
}

/** Requests through the gateway of a whole platform, and through the same gateway to the floor and to peers. */
export async function measureThroughput({ isQuick }: Effort): Promise<Section> {
  const limits = { PLAT_LIMIT_API_PER_MINUTE: '1000000', PLAT_LIMIT_API_BURST: '1000000' }
  await using platform = await startRunning(limits, join(import.meta.dirname, 'functions'))
  const { url, accessToken } = platform
  const { id } = await ask(url, registration(accessToken))
  const target = { url: `${url}/api/v1/clusters/${id}`, accessToken }
  await checkAnswers(target)
  return await loadAll(target, isQuick)
}

interface Target {
  url: string
  accessToken: string
}

const newLoad = (): Load => ({ perSecond: [], p50Ms: [], p99Ms: [] })

/** autocannon counts statuses; here is what is in the answers. */
async function checkAnswers({ url, accessToken }: Target): Promise<void> {
  const bodies = sides.map(async (side) => {
    const response = await fetch(url, { headers: { ...bearer(accessToken), 'x-bench-side': side } })
    return `${response.status} ${await response.text()}`
  })
  const [first, ...others] = await Promise.all(bodies)
  if (others.some((body) => body !== first)) throw new Error('Not all sides answer the same.')
}

async function loadAll(target: Target, isQuick: boolean): Promise<Section> {
  const [rounds, seconds] = isQuick ? [2, 1] : [6, 3]
  const loads = new Map<Side, Load>(sides.map((side) => [side, newLoad()]))
  for (const side of sides) await fireAt(target, side, 2)
  for (const _ of range(rounds)) {
    for (const [side, { perSecond, p50Ms, p99Ms }] of shuffled([...loads])) {
      const { requests, latency } = await fireAt(target, side, seconds)
      perSecond.push(requests.average)
      p50Ms.push(latency.p50)
      p99Ms.push(latency.p99)
    }
  }
  return section(loads)
}

const fireAt = ({ url, accessToken }: Target, side: Side, seconds: number): Promise<Fired> =>
  fire({ url, headers: { ...bearer(accessToken), 'x-bench-side': side }, connections: 8, seconds })

function section(loads: ReadonlyMap<Side, Load>): Section {
  const of = (side: Side): Load => loads.get(side) ?? newLoad()
  const [floor, platform] = [of('floor'), of('platform')]
  const row = (side: Side) => {
    const { perSecond, p50Ms, p99Ms } = of(side)
    const rate = ratios(perSecond, floor.perSecond)
    const times = [spread(p50Ms).median, spread(p99Ms).median, ratios(p99Ms, floor.p99Ms).median]
    return [side, spread(perSecond).median, rate.median, rate.min, rate.max, ...times]
  }
  // As multiples of the platform's, so that less is better.
  const slowdown = ratios(floor.perSecond, platform.perSecond).median
  return {
    title: 'One machine: reading one cluster over HTTP',
    columns: ['handler', 'requests/s', 'ratio, median', 'min', 'max', 'p50 ms', 'p99 ms', 'p99 ratio'],
    rows: sides.map(row),
    goals: [
      hope(atMost('requests/s of the floor, × the platform', slowdown, 1 / 0.8)),
      hope(atMost('p99 of the platform, × floor', ratios(platform.p99Ms, floor.p99Ms).median, 1.4)),
    ],
  }
}
