import { tasks } from '@platform/contract/task'
import { dueShards } from '@platform/core/db/keys'
import type { Inputs } from './inputs.ts'
import { organisationLimits, platformLimits } from './limits.ts'
import type { Limit, Rates } from './rates.ts'
import { about, table } from './table.ts'
import { flowOf, millisecondsOf } from './usage.ts'

/** Where limits come, as tables: those of the platform, those of one organisation, and what is counted otherwise. */
export const scaleTables = (inputs: Inputs): string =>
  [
    `### Of the whole platform\n\n${firstOf(platformLimits(inputs))}\n\n${limitTable(platformLimits(inputs))}`,
    `### Of one organisation\n\n${limitTable(organisationLimits(inputs))}`,
    `### Counted otherwise\n\n${otherTable(inputs)}`,
  ].join('\n\n')

const size = (count: number | undefined): string => (count === undefined ? '–' : about(count))

/** Which limits come first, in words; and which once the table has grown. */
function firstOf(limits: readonly Limit[]): string {
  const later = limits.filter(({ name }) => name !== 'A new table')
  return `What comes first: ${lowestOf(limits)}. Once the table has grown with its load:\n${lowestOf(later)}.`
}

function lowestOf(limits: readonly Limit[]): string {
  const lowest = (kind: keyof Rates) => {
    const sizes = limits.flatMap(({ name, rates }) => (rates[kind] === undefined ? [] : [{ name, size: rates[kind] }]))
    const [first] = sizes.toSorted((one, other) => one.size - other.size)
    return `"${first?.name}", at ${about(first?.size ?? 0)}`
  }
  return `for relays ${lowest('relays')}; for single jobs ${lowest('single')} a second; for jobs of batches ${lowest('batch')} a second`
}

function limitTable(limits: readonly Limit[]): string {
  const rows = limits.map(({ name, capacity, rates: { relays, single, batch }, seen, remedy }) => [
    name,
    capacity,
    size(relays),
    size(single),
    size(batch),
    seen,
    remedy,
  ])
  return table(
    [
      'limit',
      'of it there are',
      ' idle relays',
      ' single jobs a second',
      ' jobs of batches a second',
      'what is seen',
      'what to do',
    ],
    rows,
  )
}

/** Things that neither beats nor jobs are. */
function otherTable(inputs: Inputs): string {
  const { transactionsPerItem, inFlight } = inputs.limits.limits
  const { consumers } = inputs.units.deployment
  const running = consumers.reduce(
    (sum, { batchSize, maximumConcurrency = 0 }) => sum + batchSize * maximumConcurrency,
    0,
  )
  const tally = transactionsPerItem.value
  const expansion = expansionSeconds(inputs)
  const rows = [
    [
      'Batches that one organisation submits',
      about(tally),
      'a second',
      'Its gate (`OPEN-BATCHES`) is in the transaction of each. Above it calls are repeated, then 503. `PLAT_LIMIT_BATCH_PER_MINUTE` comes long before.',
    ],
    [
      'Clusters that one organisation registers or removes',
      about(tally),
      'a second',
      'Its ranks and tallies are in the transaction of each.',
    ],
    [
      'Clusters of one organisation that a sweep finds silent',
      about(tally * sweepSeconds),
      'a sweep',
      'The tally is in the transaction of each. All others wait for the next minute: their status reads right meanwhile, their notifications are late. Alarm `sweep-late`.',
    ],
    [
      'Clusters of many organisations that a sweep finds silent',
      about(silentPerSweep(inputs)),
      'a sweep',
      'The index of what is due takes no more.',
    ],
    [
      'A batch of 500, from its acceptance until its jobs can be had',
      about(expansion),
      'seconds',
      `By itself; a new table takes no more than one in ${about(unitsOfBatch(inputs) / inputs.limits.limits.newTableWriteUnits.value)} seconds. Those of each organisation are expanded in turn.`,
    ],
    [
      'Messages that are worked on at once',
      about(running),
      `of ${about(inFlight.value)}`,
      'No queue comes near to its limit: consumers take no more than they may.',
    ],
  ]
  return table(['what', ' how many', 'unit', 'why'], rows)
}

/** The time limit of the sweep. */
const sweepSeconds = tasks['schedule/sweep'].timeoutSeconds

function silentPerSweep(inputs: Inputs): number {
  const flow = flowOf(inputs, 'a cluster that falls silent')
  const units = (flow.partitions['due DUE#{shard}'] ?? 0) / flow.per
  return ((dueShards * inputs.limits.limits.partitionWriteUnits.value) / units) * sweepSeconds
}

function unitsOfBatch(inputs: Inputs): number {
  return flowOf(inputs, 'a job of a batch, until its relay can have it').writeUnits
}

function expansionSeconds(inputs: Inputs): number {
  const { functions } = flowOf(inputs, 'a job of a batch, until its relay can have it')
  return millisecondsOf(inputs, functions['queue/batches'] ?? { invocations: 0, rounds: 0 }) / 1000
}
