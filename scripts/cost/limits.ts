import { dueShards } from '@platform/core/db/keys'
import type { Inputs } from './inputs.ts'
import { alarmOf, inPartition, type Limit, ratesOf, secondsOf } from './rates.ts'
import { about } from './table.ts'

/** What others do when the store, or a part of it, refuses calls. */
const busy = 'Calls are repeated, then answered 503 with `Retry-After`; relays go on with what they run.'

/** Limits of the whole platform. */
export const platformLimits = (inputs: Inputs): Limit[] => [
  ...tableLimits(inputs),
  ...gatewayLimits(inputs),
  ...functionLimits(inputs),
]

function tableLimits(inputs: Inputs): Limit[] {
  const { newTableWriteUnits, tableWriteUnits, partitionWriteUnits } = inputs.limits.limits
  return [
    {
      name: 'A new table',
      capacity: `${about(newTableWriteUnits.value)} write units a second`,
      rates: ratesOf(inputs, newTableWriteUnits.value, (flow) => flow.writeUnits),
      seen: `${alarmOf(inputs, 'table-throttles')}. ${busy}`,
      remedy: 'Let the load grow over hours: a table takes twice its last peak. Or set its warm throughput.',
    },
    {
      name: 'The quota of a table',
      capacity: `${about(tableWriteUnits.value)} write units a second`,
      rates: ratesOf(inputs, tableWriteUnits.value, (flow) => flow.writeUnits),
      seen: 'The same.',
      remedy: 'Have the quota raised.',
    },
    {
      name: 'The index of what is due',
      capacity: `${dueShards} partitions of ${about(partitionWriteUnits.value)} write units a second`,
      rates: ratesOf(inputs, dueShards * partitionWriteUnits.value, inPartition('due DUE#{shard}')),
      seen: 'The same, while the table as a whole has room: writes to an index that is full hold up those to the table.',
      remedy:
        'More shards (`dueShards` in `keys.ts`; the sweep asks each of them every minute). Entries are ordered by time, so that the store cannot split them.',
    },
  ]
}

function gatewayLimits(inputs: Inputs): Limit[] {
  const { requestsPerSecond } = inputs.units.deployment
  const { gatewayRequestsPerSecond } = inputs.limits.limits
  return [
    {
      name: "The gateway's own limit",
      capacity: `${about(requestsPerSecond)} requests a second`,
      rates: ratesOf(inputs, requestsPerSecond, (flow) => flow.requests),
      seen: '429 of the gateway, without our error body. Relays beat again later; callers repeat.',
      remedy: '`throttlingRateLimit` in `infra/gateway.ts`.',
    },
    {
      name: 'The quota of gateways',
      capacity: `${about(gatewayRequestsPerSecond.value)} requests a second`,
      rates: ratesOf(inputs, gatewayRequestsPerSecond.value, (flow) => flow.requests),
      seen: 'The same.',
      remedy: 'Have the quota raised, or beat less often: `PLAT_HEARTBEAT_INTERVAL_SECONDS`.',
    },
  ]
}

function functionLimits(inputs: Inputs): Limit[] {
  const { concurrency, concurrencyPerTenSeconds } = inputs.limits.limits
  const { consumers } = inputs.units.deployment
  const consumer = (queue: string) =>
    consumers.find((each) => each.queue === queue)?.maximumConcurrency ?? concurrency.value
  return [
    {
      name: 'Functions at once',
      capacity: `${about(concurrency.value)}, and ${about(concurrencyPerTenSeconds.value)} more of one function every ten seconds`,
      rates: ratesOf(inputs, concurrency.value, secondsOf(inputs)),
      seen: `${alarmOf(inputs, 'throttles')}; 503 of the gateway; messages come again later.`,
      remedy: 'Have the quota raised: new accounts begin with far less.',
    },
    {
      name: 'Keeping the books',
      capacity: `${consumer('events')} of \`queue/events\` at once`,
      rates: { batch: busyBooks(inputs, consumer('events')) },
      seen: `${alarmOf(inputs, 'books-lag')}: audit, totals, notifications and webhooks are late, jobs are not.`,
      remedy: '`maximumConcurrency` of `queue/events` in `packages/contract/src/task.ts`.',
    },
    {
      name: 'Expanding batches',
      capacity: `${consumer('batches')} of \`queue/batches\` at once`,
      rates: ratesOf(
        inputs,
        consumer('batches'),
        secondsOf(inputs, (name) => name === 'queue/batches'),
      ),
      seen: `${alarmOf(inputs, 'batches-age')}: accepted batches begin later.`,
      remedy: '`maximumConcurrency` of `queue/batches`.',
    },
  ]
}

/**
 * Of how many jobs a second so many workers keep the books. Where much waits a run takes ten messages and a closing twenty
 * records, as for the jobs of a batch; a single job that is alone takes more, when there is nothing else to do.
 */
const busyBooks = (inputs: Inputs, workers: number): number | undefined =>
  ratesOf(
    inputs,
    workers,
    secondsOf(inputs, (name) => name === 'queue/events'),
  ).batch

/** Limits of one organisation: others do not meet them. */
export function organisationLimits(inputs: Inputs): Limit[] {
  const unit = inputs.limits.limits.partitionWriteUnits.value
  const partition = (name: string, kind: string, seen: string, remedy: string): Limit => {
    const rates = ratesOf(inputs, unit, inPartition(kind))
    return { name, capacity: `${about(unit)} write units a second`, rates, seen, remedy }
  }
  const split =
    'Nothing at first: the store splits a partition that stays busy, and beats spread over it. Else beats less often.'
  return [
    partition('Its clusters (`ORG#…#CLUSTER`)', 'ORG#{org}#CLUSTER', busy, split),
    {
      name: 'Its books, which one worker keeps at a time',
      capacity: 'one run after the other',
      rates: { batch: busyBooks(inputs, 1) },
      seen: `${alarmOf(inputs, 'books-lag')}.`,
      remedy: 'Several organisations; or more records for each closing.',
    },
    partition(
      'Its outbox (`ORG#…#OUTBOX`)',
      'ORG#{org}#OUTBOX',
      busy,
      'Several organisations; or an outbox of several partitions, each drained in turn.',
    ),
    partition(
      'Its heads: chain, totals, turns (`ORG#…`)',
      'ORG#{org}',
      'The books lag, and then take twenty records at once: a single job takes as little as one of a batch.',
      'Nothing: it eases by itself.',
    ),
    partition('Its list of jobs (`gsi2 …#JOBS`)', 'gsi2 {org}#JOBS', busy, 'Several organisations.'),
  ]
}
