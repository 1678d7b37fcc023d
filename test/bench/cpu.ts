import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { newCaller } from '../support/fixtures.ts'
import type { TestRequest } from '../support/request.ts'
import { type HandlerProcess, startHandlers } from './support/handlers.ts'
import { metered } from './support/meter.ts'
import { buildPeers, peerModule, peerNames } from './support/peers.ts'
import { getRequest, jobRequest } from './support/requests.ts'
import { atMost, type Effort, type Section } from './support/section.ts'
import { range, ratios, shuffled, spread } from './support/statistics.ts'
import { newRelay, setUp, type Tenant } from './support/tenant.ts'

const sides = ['baseline', 'platform', ...peerNames] as const
type Side = (typeof sides)[number]

interface Comparison {
  name: string
  modules: Record<Side, string>
  requests(count: number): Promise<TestRequest[]>
  limit: number
}

interface Measurements {
  cpuMicroseconds: number[]
  units: number[]
}

export async function* measureCpu({ isQuick }: Effort): AsyncGenerator<Section> {
  await buildPeers()
  // Rounds are short, so that other load on the machine affects all sides alike.
  const [rounds, warmUps, count] = isQuick ? [6, 6, 40] : [30, 20, 50]
  const comparisons = await comparisonsFor(await setUp())
  const results = comparisons.map((comparison) => ({
    ...comparison,
    sides: new Map(sides.map((side): [Side, Measurements] => [side, { cpuMicroseconds: [], units: [] }])),
  }))
  using stack = new DisposableStack()
  // A sandbox serves one function only, so each function of each side has its own process.
  const processes = new Map<string, HandlerProcess>()
  const processFor = (side: Side, { modules }: Comparison) => {
    const key = `${side} ${modules.platform}`
    const started = processes.get(key) ?? stack.use(startHandlers())
    processes.set(key, started)
    return started
  }
  for (const round of range(warmUps + rounds)) {
    for (const result of shuffled(results)) {
      const bodyBytes = new Set<number>()
      for (const [side, measurements] of shuffled([...result.sides])) {
        const requests = await result.requests(count)
        const work = () => processFor(side, result).run(result.modules[side], requests)
        const { result: run, usage } = await metered(work)
        bodyBytes.add(run.bodyBytes)
        if (round < warmUps) continue
        measurements.cpuMicroseconds.push(run.cpuMicroseconds / count)
        measurements.units.push((usage.readUnits + usage.writeUnits) / count)
      }
      if (bodyBytes.size > 1) throw new Error(`${result.name}: the responses differ.`)
    }
  }
  yield sectionFor(results)
}

function sectionFor(results: readonly (Comparison & { sides: Map<Side, Measurements> })[]): Section {
  const rows = results.flatMap(({ name, sides: measurements, limit }) => {
    const baseline = measurements.get('baseline')?.cpuMicroseconds ?? []
    return [...measurements].map(([side, { cpuMicroseconds, units }]) => {
      const { median, min, max } = ratios(cpuMicroseconds, baseline)
      const isLimited = side === 'platform'
      return {
        name,
        side,
        units: spread(units).median,
        micros: spread(cpuMicroseconds).median,
        median,
        min,
        max,
        limit: isLimited ? limit : '',
      }
    })
  })
  return {
    title: 'CPU time of a warm operation',
    columns: ['operation', 'side', 'units', 'µs', '× baseline', 'min', 'max', 'goal'],
    rows: rows.map((row) => Object.values(row)),
    goals: rows.flatMap(({ name, median, limit }) =>
      typeof limit === 'number' ? [atMost(`${name}: CPU, × baseline`, median, limit)] : [],
    ),
  }
}

const hourMs = 3_600_000

const clearJobs = (organisationId: string, clusterId: string) =>
  update(keys.cluster(organisationId, clusterId), {
    set: { activeJobs: 0, waitingJobs: 0, jobs: 0 },
    remove: ['listedJobs'],
  })

async function comparisonsFor({ accessToken, organisationId }: Tenant): Promise<Comparison[]> {
  const { clusterId } = await newRelay(accessToken)
  // The status must not change during the run.
  await update(keys.cluster(organisationId, clusterId), { set: { lastSeenAtMs: Date.now() + hourMs } })
  const relays = await Promise.all(range(50).map(() => newRelay(accessToken)))
  const clusterIds = relays.map((relay) => relay.clusterId)
  const target = `/api/v1/clusters/${clusterId}`
  const subject = { ...(await newCaller(organisationId)), roles: ['OrgAdmin'] }
  const repeat = (request: TestRequest) => async (count: number) => range(count).map(() => request)
  const reading = modulesFor('clusters', 'get-cluster')
  return [
    { name: 'GET /clusters/{id}', modules: reading, requests: repeat(getRequest(target, accessToken)), limit: 1.1 },
    {
      name: 'GET /clusters/{id}, a new token each',
      modules: reading,
      requests: (count) =>
        Promise.all(range(count).map(async () => getRequest(target, await issueAccessToken(subject)))),
      // The platform also reads the session and the user of a new token.
      limit: 2.2,
    },
    {
      name: 'POST /jobs',
      modules: modulesFor('jobs', 'submit-job'),
      requests: async (count) => {
        // The platform stores the jobs of a cluster with many waiting jobs in another way.
        await Promise.all(clusterIds.map((id) => clearJobs(organisationId, id)))
        return clusterIds.slice(0, count).map((id) => jobRequest(accessToken, id))
      },
      limit: 1.3,
    },
  ]
}

const modulesFor = (functionName: string, baseline: string): Record<Side, string> => ({
  platform: `functions/${functionName}.ts`,
  baseline: `test/bench/baseline/${baseline}.ts`,
  fastify: peerModule('fastify'),
  express: peerModule('express'),
})
