import { clusterStatuses } from '@platform/contract/cluster'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { sweep } from '@platform/core/sweep'
import { callerOf, enrolledCluster } from '../../test/support/world.ts'
import { metered, storeCallsOf, type Usage, writesOf } from '../support/meter.ts'
import { atMost, type Section } from '../support/section.ts'
import { range } from '../support/statistics.ts'

const flips = 20
const silenceMs = 600_000

/** What the minutely sweep costs: with nothing to do, and when clusters of one organisation fall silent. */
export async function measureSweeps(): Promise<Section> {
  shiftClock(silenceMs)
  await sweep()
  const { usage: idle } = await metered(sweep)

  const caller = callerOf()
  await Promise.all(range(flips).map(() => enrolledCluster(caller)))
  shiftClock(silenceMs)
  const { usage: busy } = await metered(sweep)
  const drift = await tallyDrift(caller)
  shiftClock(-2 * silenceMs)

  const row = (name: string, usage: Usage) => {
    const { readUnits, writeUnits, rounds } = usage
    return [name, storeCallsOf(usage), rounds, writesOf(usage), readUnits, writeUnits]
  }
  return {
    title: 'The minutely sweep',
    notes: ['It asks four partitions of the index of what is due, at once.'],
    columns: ['situation', 'store calls', 'rounds', 'calls that write', 'read units', 'write units'],
    rows: [row('nothing is due', idle), row(`${flips} clusters of one organisation fall silent`, busy)],
    goals: [
      atMost('sweep with nothing due: calls', storeCallsOf(idle), keys.dueShards),
      atMost('sweep with nothing due: writes', writesOf(idle), 0),
      atMost(`sweep with ${flips} flips: calls that write`, writesOf(busy), flips + 1),
      atMost('sweep: drift of the tallies', drift, 0),
    ],
  }
}

/** By how much the tallies differ from a count of all rows, which a small organisation's filter makes. */
async function tallyDrift(caller: ReturnType<typeof callerOf>): Promise<number> {
  const tally = await get(keys.clusterTally(caller.organisationId))
  const differences = clusterStatuses.map(async (status) => {
    const { totalCount } = await Cluster.list(caller, { status, page: 1, pageSize: 1 })
    const tallied = Object.entries(tally ?? {}).filter(([name]) => name.endsWith(`#${status}`))
    return Math.abs(tallied.reduce((sum, [, count]) => sum + Number(count), 0) - totalCount)
  })
  return (await Promise.all(differences)).reduce((sum, difference) => sum + difference, 0)
}
