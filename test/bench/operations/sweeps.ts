import { clusterStatuses } from '@platform/contract/cluster'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { sweep } from '@platform/core/background/sweep'
import { newCaller, enrolledCluster } from '../../support/fixtures.ts'
import { metered, storeCallsOf, type Usage, writesOf } from '../support/meter.ts'
import { atMost, hope, type Section } from '../support/section.ts'
import { range } from '../support/statistics.ts'

const flips = 20
const silenceMs = 600_000
const settlingSweeps = 8

/** What the minutely sweep costs: with nothing to do, and when clusters of one organisation fall silent. */
export async function measureSweeps(): Promise<Section> {
  const sweepLater = async () => {
    shiftClock(silenceMs)
    return (await metered(sweep)).usage
  }
  // What ran before leaves things to tidy up.
  for (const _ of range(settlingSweeps)) await sweepLater()
  const idle = await sweepLater()

  const caller = await newCaller()
  await Promise.all(range(flips).map(() => enrolledCluster(caller)))
  const busy = await sweepLater()
  const drift = await tallyDrift(caller)
  shiftClock(-(settlingSweeps + 2) * silenceMs)

  return {
    title: 'The minutely sweep',
    columns: ['situation', 'store calls', 'calls that write', 'read units', 'write units'],
    rows: [rowOf('nothing is due', idle), rowOf(`${flips} clusters of one organisation fall silent`, busy)],
    goals: [
      // 1 + N/7,000 of a fleet as small as this one.
      hope(atMost('sweep with nothing due: calls', storeCallsOf(idle), 1)),
      atMost('sweep with nothing due: calls, one for each shard', storeCallsOf(idle), keys.dueShards),
      atMost('sweep with nothing due: writes', writesOf(idle), 0),
      atMost(`sweep with ${flips} flips: calls that write`, writesOf(busy), flips + 1),
      atMost('sweep: drift of the tallies', drift, 0),
    ],
  }
}

const rowOf = (name: string, usage: Usage) => [
  name,
  storeCallsOf(usage),
  writesOf(usage),
  usage.readUnits,
  usage.writeUnits,
]

/** By how much the tallies differ from a count of all rows, which a small organisation's filter makes. */
async function tallyDrift(caller: Awaited<ReturnType<typeof newCaller>>): Promise<number> {
  const tally = await get(keys.clusterStatusCounts(caller.organisationId))
  const differences = clusterStatuses.map(async (status) => {
    const { totalCount } = await Cluster.list(caller, { status, page: 1, pageSize: 1 })
    const tallied = Object.entries(tally ?? {}).filter(([name]) => name.endsWith(`#${status}`))
    return Math.abs(tallied.reduce((sum, [, count]) => sum + Number(count), 0) - totalCount)
  })
  return (await Promise.all(differences)).reduce((sum, difference) => sum + difference, 0)
}
