import { shiftClock } from '@platform/core/clock'
import { client } from '@platform/core/db/table'
import { config } from '@platform/core/config'
import { handler as relays } from '../../../functions/relay.ts'
import { send } from '../../support/request.ts'
import { metered } from '../support/meter.ts'
import { beat } from '../support/relay.ts'
import { atMost, type Section } from '../support/section.ts'
import { accepted, newCluster, type Tenant } from '../support/tenant.ts'

const intervalMs = config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
const beats = 3_600_000 / intervalMs
/** Beats until the row remembers as many request tokens as it ever will. */
const beatsBefore = 20

interface Capacity {
  table: number
  indexes: number
  indexWrites: number
}

/** One hour of a relay that has nothing to do. */
export async function measureIdleHour({ accessToken }: Tenant): Promise<Section> {
  const { relay } = await newCluster(accessToken)
  const beatOnce = async () => {
    shiftClock(intervalMs)
    accepted(await send(relays, await beat(relay)))
  }
  for (let count = 0; count < beatsBefore; count++) await beatOnce()
  const capacity = watchWrites()
  const { usage } = await metered(async () => {
    for (let count = 0; count < beats; count++) await beatOnce()
  })
  shiftClock(-intervalMs * (beatsBefore + beats))

  const { GetItem: reads = 0, UpdateItem: writes = 0 } = usage.calls
  const calls = Object.values(usage.calls).reduce((sum, count) => sum + count, 0)
  return {
    title: 'One idle hour of a relay',
    columns: ['beats', 'reads', 'read units', 'writes', 'table write units', 'index writes', 'index write units'],
    rows: [[beats, reads, usage.readUnits, writes, capacity.table, capacity.indexWrites, capacity.indexes]],
    goals: [
      atMost('idle hour: calls', calls, 2 * beats),
      atMost('idle hour: reads', reads, beats),
      atMost('idle hour: read units', usage.readUnits, beats * 0.5),
      atMost('idle hour: write units of the table', capacity.table, beats),
      atMost('idle hour: writes that move an index entry', capacity.indexWrites, beats / 4),
    ],
  }
}

/** Has the store tell with every write what it cost, and sums that up. */
function watchWrites(): Capacity {
  const sum: Capacity = { table: 0, indexes: 0, indexWrites: 0 }
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (command) => {
        if (commandName !== 'UpdateItemCommand') return next(command)
        Object.assign(command.input, { ReturnConsumedCapacity: 'INDEXES' })
        const result = await next(command)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an update answers one capacity
        note(sum, (result.output as { ConsumedCapacity?: Capacities }).ConsumedCapacity)
        return result
      },
    { step: 'initialize', name: 'benchWatchWrites' },
  )
  return sum
}

interface Capacities {
  CapacityUnits?: number
  Table?: { CapacityUnits?: number }
}

function note(sum: Capacity, capacity: Capacities = {}): void {
  const table = capacity.Table?.CapacityUnits ?? 0
  const indexes = (capacity.CapacityUnits ?? 0) - table
  sum.table += table
  sum.indexes += indexes
  if (indexes > 0) sum.indexWrites++
}
