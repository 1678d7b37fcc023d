import type { Feed } from '../paging/feed.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import type { Tenant } from '../support/tenant.ts'
import { type Length, microseconds, raceContests, type Result, slowdown } from './contest.ts'
import { contestsOf } from './contests.ts'
import { peersSection } from './peers.ts'

/** The most CPU time that an operation may take, as a multiple of the floor's. */
const limits: Readonly<Record<string, number>> = {
  'GET /clusters/{id}': 1.1,
  'GET /clusters/{id}, a fresh token each': 1.35,
  'POST /jobs': 1.15,
}

/** CPU time of the handler's process, against bare handlers and peers that make the same calls of the same store. */
export async function* measureRatios(
  tenant: Tenant,
  feeds: readonly Feed[],
  { isQuick }: Effort,
): AsyncGenerator<Section> {
  // Short rounds: what else runs on the machine then strikes all sides of one alike.
  const length = isQuick ? { rounds: 6, warmUps: 6, count: 40 } : { rounds: 30, warmUps: 20, count: 50 }
  const results = await raceContests(await contestsOf(tenant, feeds), length)
  yield section(results, length)
  yield peersSection(results, length)
}

function section(results: readonly Result[], { rounds, count }: Length): Section {
  return {
    title: 'CPU time of an operation, against the floor',
    notes: [
      `The floor is a plain function with the raw SDK client: the same calls with attribute maps written by hand, the token verified with node:crypto at each request, no framework, no schemas, no log. Each function runs in a process of its own, as it does in a sandbox, and so does its floor; the store is the same. ${rounds} rounds of ${count} requests each in a warm process, in random order; a ratio compares the two within one round; answers are checked to be of the same length, and to cost the same capacity.`,
    ],
    columns: ['operation', 'ratio, median', 'min', 'max', 'goal', 'platform µs', 'floor µs'],
    rows: results.map((result) => {
      const { name } = result.contest
      const { median, min, max } = slowdown(result, 'platform')
      const times = [microseconds(result, 'platform'), microseconds(result, 'floor')]
      return [name, median, min, max, limits[name] ?? '', ...times]
    }),
    goals: results.flatMap((result) => {
      const { name } = result.contest
      const limit = limits[name]
      return limit === undefined ? [] : [atMost(`${name}: CPU, × floor`, slowdown(result, 'platform').median, limit)]
    }),
  }
}
