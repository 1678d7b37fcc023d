import { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { peerNames, peersNote } from '../support/peers.ts'
import { atMost, type Effort, type Goal, type Section } from '../support/section.ts'
import type { StubbedItems } from '../support/stub-store.ts'
import type { Tenant } from '../support/tenant.ts'
import { tableName } from '../support/world.ts'
import { type Length, microseconds, raceContests, type Result, type Side, slowdown } from './contest.ts'
import { sharedContests, steadyCluster } from './contests.ts'
import { peersColumns, peersTitle, shareTitle } from './peers-table.ts'

/** The platform beside frameworks in which others write the same operations. */

const sides: readonly Side[] = ['floor', 'platform', ...peerNames]

/** The contests of a race that peers take part in. */
export function peersSection(results: readonly Result[], { rounds, count }: Length): Section {
  return {
    title: peersTitle,
    notes: [
      `${peersNote} The same race as above: ${rounds} rounds of ${count} requests, all sides in random order, each in a process of its own, checked to answer as much and to cost the same capacity.`,
    ],
    columns: peersColumns,
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
        const { median: ofNest } = slowdown(result, side, 'nest')
        return [result.contest.name, side, microseconds(result, side), median, min, max, ofNest]
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
    title: shareTitle,
    notes: [
      `The race of above with an SDK that answers at once what the store would: what is left is the framework, the token, the validation and, at the platform, its log line. ${length.rounds} rounds of ${length.count} requests.`,
    ],
    columns: peersColumns,
    rows: rowsOf(results),
    goals: results.filter(({ contest }) => !contest.name.includes('fresh')).flatMap(shareGoals),
  }
}

const shareGoals = (result: Result): Goal[] => [
  atMost(`${result.contest.name} without the store: CPU, × floor`, slowdown(result, 'platform').median, 0.6),
  atMost(`${result.contest.name} without the store: CPU, × nest`, slowdown(result, 'platform', 'nest').median, 0.25),
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
