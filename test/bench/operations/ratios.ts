import type { Feed } from '../paging/feed.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import type { Tenant } from '../support/tenant.ts'
import { microseconds, raceContests, type Result, slowdown } from './contest.ts'
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
  yield section(results)
  yield peersSection(results)
}

function section(results: readonly Result[]): Section {
  return {
    title: 'CPU time of an operation, against the floor',
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
