import { posting, type Sent } from '../../test/support/event.ts'
import type { Feed } from '../paging/feed.ts'
import { startHandlers } from '../support/handlers.ts'
import { metered } from '../support/meter.ts'
import { beat } from '../support/relay.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { bearer, getting, newCluster, newToken, type Tenant } from '../support/tenant.ts'

/** An operation of the platform, the floor that does the same, and requests for both. */
interface Contest {
  name: string
  platform: string
  floor: string
  requests(count: number): Promise<Sent[]>
  /** The most CPU time that it may take, as a multiple of the floor's. */
  limit?: number
}

/** What the rounds of one side took. */
interface Side {
  /** Microseconds of CPU time of a request. */
  cpu: number[]
  /** Read and write units of a round. */
  units: number[]
}

type Result = { contest: Contest } & Record<(typeof sides)[number], Side>

const sides = ['platform', 'floor'] as const

/** CPU time of the handler's process, against a bare handler that makes the same calls of the same store. */
export async function measureRatios(tenant: Tenant, feeds: readonly Feed[], { isQuick }: Effort): Promise<Section> {
  // Short rounds: what else runs on the machine then strikes both sides of one alike.
  const [rounds, count, warmUps] = isQuick ? [6, 40, 6] : [30, 50, 20]
  const results = [...(await contestsOf(tenant)), ...feeds.map(readingFeed)].map((contest): Result => ({
    contest,
    platform: newSide(),
    floor: newSide(),
  }))
  await using platform = startHandlers({})
  await using floor = startHandlers({})
  const processes = { platform, floor }
  for (const round of range(warmUps + rounds)) {
    for (const result of shuffled(results)) {
      const { contest } = result
      const bodies = new Set<number>()
      for (const side of shuffled(sides)) {
        const requests = await contest.requests(count)
        const { result: outcome, usage } = await metered(() => processes[side].run(contest[side], requests))
        bodies.add(outcome.bodyBytes)
        if (round < warmUps) continue
        result[side].cpu.push(outcome.cpuMicroseconds / count)
        result[side].units.push(usage.readUnits + usage.writeUnits)
      }
      if (bodies.size > 1) throw new Error(`${contest.name}: the floor does not answer what the platform answers.`)
    }
  }
  results.forEach(checkCapacity)
  return section(results, `${rounds} rounds of ${count} requests`)
}

const newSide = (): Side => ({ cpu: [], units: [] })

/** Single rounds may differ: a beat moves its cluster's entry in the index of what is due once in a while. */
function checkCapacity({ contest, platform, floor }: Result): void {
  const [units, floorUnits] = [spread(platform.units).median, spread(floor.units).median]
  if (units === floorUnits) return
  throw new Error(`${contest.name} takes ${units} units a round, the floor ${floorUnits}: it does not do the same.`)
}

function section(results: readonly Result[], effort: string): Section {
  return {
    title: 'CPU time of an operation, against the floor',
    notes: [
      `The floor is a plain function with the raw SDK client: the same calls with attribute maps written by hand, the token verified with node:crypto at each request, no framework, no schemas, no log. Both run in processes of their own against the same store. ${effort} each in a warm process, in random order; a ratio compares the two within one round; answers are checked to be of the same length, and to cost the same capacity.`,
    ],
    columns: ['operation', 'ratio, median', 'min', 'max', 'goal', 'platform µs', 'floor µs'],
    rows: results.map(({ contest, platform, floor }) => {
      const { median, min, max } = ratios(platform.cpu, floor.cpu)
      return [
        contest.name,
        median,
        min,
        max,
        contest.limit ?? '',
        spread(platform.cpu).median,
        spread(floor.cpu).median,
      ]
    }),
    goals: results.flatMap(({ contest, platform, floor }) => {
      const { median } = ratios(platform.cpu, floor.cpu)
      return contest.limit === undefined ? [] : [atMost(`${contest.name}: CPU, × floor`, median, contest.limit)]
    }),
  }
}

/** As many as one round has requests: a relay beats once in a round. */
const relayCount = 50

const readingFeed = ({ accessToken, count }: Feed): Contest => ({
  name: `GET /notifications, of ${count.toLocaleString('en')}`,
  platform: 'functions/notifications.ts',
  floor: 'bench/floor/list-notifications.ts',
  requests: times(getting('/api/v1/notifications', accessToken)),
})

const times =
  (sent: Sent) =>
  async (count: number): Promise<Sent[]> =>
    range(count).map(() => sent)

async function contestsOf({ accessToken, organisationId }: Tenant): Promise<Contest[]> {
  const relays: Awaited<ReturnType<typeof newCluster>>['relay'][] = []
  for (const _ of range(relayCount)) relays.push((await newCluster(accessToken)).relay)
  const { clusterId } = await newCluster(accessToken)
  const target = `/api/v1/clusters/${clusterId}`
  const submission = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const reading = { platform: 'functions/clusters.ts', floor: 'bench/floor/get-cluster.ts' }
  const listing = { platform: 'functions/clusters.ts', floor: 'bench/floor/list-clusters.ts' }
  const submitting = { platform: 'functions/jobs.ts', floor: 'bench/floor/submit-job.ts' }
  const beating = { platform: 'functions/relay.ts', floor: 'bench/floor/heartbeat.ts' }
  const withFreshTokens = (count: number) =>
    Promise.all(range(count).map(async () => getting(target, await newToken(organisationId))))
  return [
    { name: 'GET /clusters/{id}', ...reading, requests: times(getting(target, accessToken)), limit: 1.1 },
    { name: 'GET /clusters/{id}, a fresh token each', ...reading, requests: withFreshTokens, limit: 1.35 },
    { name: 'GET /clusters', ...listing, requests: times(getting('/api/v1/clusters', accessToken)) },
    {
      name: 'POST /jobs',
      ...submitting,
      requests: times(posting('/api/v1/jobs', submission, bearer(accessToken))),
      limit: 1.15,
    },
    {
      name: 'POST /relay/heartbeat, nothing to do',
      ...beating,
      requests: (count) => Promise.all(relays.slice(0, count).map(beat)),
    },
  ]
}
