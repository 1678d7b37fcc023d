import { send, posting, type Sent } from '../../test/support/event.ts'
import { handler as clusters } from '../../functions/clusters.ts'
import { type HandlerProcess, startHandlers } from '../support/handlers.ts'
import type { Outcome } from '../support/handler-process.ts'
import { beat } from '../support/relay.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { accepted, bearer, getting, newCluster, newToken, type Tenant } from '../support/tenant.ts'

/** An operation of the platform, the floor that does the same, and requests for both. */
interface Contest {
  name: string
  platform: string
  floor: string
  requests(count: number): Sent[] | Promise<Sent[]>
  /** The most CPU time that it may take, as a multiple of the floor's. */
  limit?: number
}

const sides = ['platform', 'floor'] as const
type Side = (typeof sides)[number]

/** CPU time of the handler's process, against a bare handler that makes the same calls of the same store. */
export async function measureRatios(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const [rounds, count, warmUp] = isQuick ? [6, 60, 300] : [8, 250, 800]
  const contests = await contestsOf(tenant)
  await using platform = startHandlers({})
  await using floor = startHandlers({})
  const processes = { platform, floor }
  for (const contest of contests) for (const side of sides) await runTimes(processes[side], contest, side, warmUp)

  const results = contests.map((contest) => ({ contest, platform: [] as number[], floor: [] as number[] }))
  for (const _ of range(rounds)) {
    for (const result of shuffled(results)) {
      const { contest } = result
      const bodies = new Set<number>()
      for (const side of shuffled(sides)) {
        const { cpuMicroseconds, bodyBytes } = await runTimes(processes[side], contest, side, count)
        result[side].push(cpuMicroseconds / count)
        bodies.add(bodyBytes)
      }
      if (bodies.size > 1) throw new Error(`${contest.name}: the floor does not answer what the platform answers.`)
    }
  }
  return {
    title: 'CPU time of an operation, against the floor',
    notes: [
      `The floor is a plain function with the raw SDK client: the same calls with attribute maps written by hand, the token verified with node:crypto at each request, no framework, no schemas, no log. Both run in processes of their own against the same store. ${rounds} rounds of ${count} requests, in random order; a ratio compares the two within one round; answers are checked to be of the same length.`,
    ],
    columns: ['operation', 'ratio, median', 'min', 'max', 'goal', 'platform µs', 'floor µs'],
    rows: results.map(({ contest, ...cpu }) => {
      const { median, min, max } = ratios(cpu.platform, cpu.floor)
      return [
        contest.name,
        median,
        min,
        max,
        contest.limit ?? '',
        spread(cpu.platform).median,
        spread(cpu.floor).median,
      ]
    }),
    goals: results.flatMap(({ contest, ...cpu }) =>
      contest.limit === undefined
        ? []
        : [atMost(`${contest.name}: CPU time, × floor`, ratios(cpu.platform, cpu.floor).median, contest.limit)],
    ),
  }
}

async function runTimes(handlers: HandlerProcess, contest: Contest, side: Side, count: number): Promise<Outcome> {
  return handlers.run(contest[side], await contest.requests(count))
}

/** Relays enough that none beats too often within one second. */
const relayCount = 60

async function contestsOf({ accessToken, organisationId }: Tenant): Promise<Contest[]> {
  const fleet: Awaited<ReturnType<typeof newCluster>>[] = []
  for (const _ of range(relayCount)) fleet.push(await newCluster(accessToken))
  // The first beat after an enrollment files the cluster in an index, which the floor does not.
  const relays = fleet.map(({ relay }) => relay)
  const { clusterId } = await newCluster(accessToken)
  const one = `/api/v1/clusters/${clusterId}`
  const same = (sent: Sent) => (count: number) => range(count).map(() => sent)
  const submission = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const handlers = { platform: 'functions/clusters.ts', floor: 'bench/floor/get-cluster.ts' }
  accepted(await send(clusters, getting(one, accessToken)))
  return [
    { name: 'GET /clusters/{id}', ...handlers, requests: same(getting(one, accessToken)), limit: 1.1 },
    {
      name: 'GET /clusters/{id}, a fresh token each',
      ...handlers,
      requests: (count) => Promise.all(range(count).map(async () => getting(one, await newToken(organisationId)))),
      limit: 1.35,
    },
    {
      name: 'GET /clusters',
      platform: 'functions/clusters.ts',
      floor: 'bench/floor/list-clusters.ts',
      requests: same(getting('/api/v1/clusters', accessToken)),
    },
    {
      name: 'POST /jobs',
      platform: 'functions/jobs.ts',
      floor: 'bench/floor/submit-job.ts',
      requests: same(posting('/api/v1/jobs', submission, bearer(accessToken))),
      limit: 1.15,
    },
    {
      name: 'POST /relay/heartbeat, nothing to do',
      platform: 'functions/relay.ts',
      floor: 'bench/floor/heartbeat.ts',
      requests: (count) => range(count).map((index) => beat(relays[index % relayCount]!)),
    },
  ]
}
