import { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { peerNames } from '../support/peers.ts'
import { atMost, type Effort, type Goal, type Section } from '../support/section.ts'
import type { StubbedItems } from '../support/stub-store.ts'
import type { Tenant } from '../support/tenant.ts'
import { tableName } from '../support/world.ts'
import { microseconds, raceContests, type Result, type Side, slowdown } from './contest.ts'
import { sharedContests, steadyCluster } from './contests.ts'

const columns = ['operation', 'side', 'µs', '× baseline', 'min', 'max']

const sides: readonly Side[] = ['floor', 'platform', ...peerNames]

/** The contests of a race that peers take part in. */
export function peersSection(results: readonly Result[]): Section {
  return {
    title: 'CPU time of an operation, compared with frameworks',
    columns,
    rows: rowsOf(results),
    goals: [],
  }
}

const rowsOf = (results: readonly Result[]) =>
  results
    .filter(({ taken }) => sides.every((side) => taken.has(side)))
    .flatMap((result) =>
      sides.map((side) => {
        const { median, min, max } = slowdown(result, side)
        return [result.contest.name, side, microseconds(result, side), median, min, max]
      }),
    )

/** What framework, validation and authentication take by themselves: the SDK answers at once. */
export async function measureShare(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const length = isQuick ? { rounds: 6, warmUps: 4, count: 100 } : { rounds: 12, warmUps: 10, count: 200 }
  const clusterId = await steadyCluster(tenant)
  const items = await itemsOf(tenant, clusterId)
  const results = await raceContests(await sharedContests(tenant, clusterId), length, {
    BENCH_STUB: JSON.stringify(items),
  })
  return {
    title: 'CPU time without the store, compared with frameworks',
    columns,
    rows: rowsOf(results),
    goals: results.filter(({ contest }) => !contest.name.includes('fresh')).flatMap(shareGoals),
  }
}

const shareGoals = (result: Result): Goal[] => [
  atMost(`${result.contest.name} without the store: CPU, × floor`, slowdown(result, 'platform').median, 0.6),
]

/** What a read of the cluster finds. */
async function itemsOf({ organisationId }: Tenant, clusterId: string): Promise<StubbedItems> {
  const store = new DynamoDBClient()
  const Keys = [keys.cluster(organisationId, clusterId), keys.nodes(organisationId, clusterId)].map(({ pk, sk }) => ({
    pk: { S: pk },
    sk: { S: sk },
  }))
  const { Responses } = await store.send(new BatchGetItemCommand({ RequestItems: { [tableName]: { Keys } } }))
  store.destroy()
  return Responses?.[tableName] ?? []
}
