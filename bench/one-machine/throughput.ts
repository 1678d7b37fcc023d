import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { posting, type Sent } from '../../test/support/event.ts'
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { administrator, bearer, registration } from '../support/tenant.ts'
import type { Announcement } from './platform.ts'

const sides = ['platform', 'floor'] as const
type Side = (typeof sides)[number]

interface Load {
  perSecond: number[]
  p50Ms: number[]
  p99Ms: number[]
}

/** Requests through the gateway of a whole platform, and through the same gateway to the floor. */
export async function measureThroughput({ isQuick }: Effort): Promise<Section> {
  const dataDir = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  const limits = { PLAT_LIMIT_API_PER_MINUTE: '1000000', PLAT_LIMIT_API_BURST: '1000000' }
  const child = fork(new URL('platform.ts', import.meta.url), {
    env: { PATH: process.env['PATH'], PLAT_PORT: '0', PLAT_DATA_DIR: dataDir, ...limits },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const exit = once(child, 'exit')
  try {
    const [announcement]: Announcement[] = await once(child, 'message')
    if (announcement === undefined) throw new Error('The platform said nothing.')
    return await loadBoth(await oneCluster(announcement), isQuick)
  } finally {
    child.disconnect()
    await exit
    await rm(dataDir, { recursive: true, force: true })
  }
}

interface Target {
  url: string
  accessToken: string
}

/** Sets the platform up and registers one cluster. */
async function oneCluster({ url, initialAdminToken }: Announcement): Promise<Target> {
  const ask = async ({ target, ...request }: Sent) => {
    const response = await fetch(`${url}${target}`, { ...request, body: String(request.body) })
    if (!response.ok) throw new Error(`${target} answered ${response.status}`)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the two answers that are asked for hold these
    return (await response.json()) as { accessToken: string; id: string }
  }
  const setup = {
    platformName: 'Bench',
    publicUrl: 'https://platform.example.com',
    timezone: 'Europe/Berlin',
    adminUsername: administrator.username,
    adminEmail: 'admin@example.com',
    adminPassword: administrator.password,
    initialAdminToken,
  }
  const { accessToken } = await ask(posting('/api/v1/setup/complete', setup))
  const { id } = await ask(registration(accessToken))
  return { url: `${url}/api/v1/clusters/${id}`, accessToken }
}

const newLoad = (): Load => ({ perSecond: [], p50Ms: [], p99Ms: [] })

async function loadBoth(target: Target, isQuick: boolean): Promise<Section> {
  const [rounds, seconds] = isQuick ? [2, 2] : [4, 4]
  const loads = { platform: newLoad(), floor: newLoad() }
  for (const side of sides) await fire(target, side, 2)
  for (const _ of range(rounds)) {
    for (const side of shuffled(sides)) {
      const { requests, latency } = await fire(target, side, seconds)
      loads[side].perSecond.push(requests.average)
      loads[side].p50Ms.push(latency.p50)
      loads[side].p99Ms.push(latency.p99)
    }
  }
  return section(loads, `${rounds} rounds of ${seconds} s`)
}

interface Fired {
  requests: { average: number }
  latency: { p50: number; p99: number }
  '2xx': number
  non2xx: number
  errors: number
}

const autocannon = join(import.meta.dirname, '../../node_modules/.bin/autocannon')

async function fire({ url, accessToken }: Target, side: Side, seconds: number): Promise<Fired> {
  const headers = { ...bearer(accessToken), 'x-bench-side': side }
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  const options = ['--json', '--no-progress', '-c', '8', '-d', String(seconds), ...given, url]
  const { stdout } = await promisify(execFile)(process.execPath, [autocannon, ...options])
  const fired: Fired = JSON.parse(stdout)
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
