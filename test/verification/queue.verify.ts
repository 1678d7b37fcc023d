import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, test } from 'vitest'
import { bootstrapPlatform } from '../support/fixtures.ts'
import type { Handled } from './queue/consumer.ts'
import { differences } from './queue/drift.ts'
import { type Load, newTenant, runRelay, submitLoad, type Tenant } from './queue/tenant.ts'
import { type Children, startChildren } from './support/children.ts'
import { claimAtLeast, claimNone } from './support/claims.ts'
import { ownQueueFaults } from './support/emulators.ts'
import { readTable } from '../support/read-table.ts'
import { amount, print, progressOf, seed } from './support/run.ts'

const load: Load = amount(
  { clusters: 3, jobs: 1000, batches: 4, jobsInBatch: 100, auditEntries: 500 },
  { clusters: 1, jobs: 30, batches: 2, jobsInBatch: 10, auditEntries: 5 },
)
const processes = amount(2, 1)

/** The queues shuffle their messages and deliver a fifth of them twice. */
beforeAll(async () => {
  await bootstrapPlatform()
  await ownQueueFaults.set({ duplicateRate: 0.2, reorderRate: 1, seed })
})
afterAll(() => ownQueueFaults.clear())

async function newTenants(count: number): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  while (tenants.length < count) tenants.push(await newTenant(load.clusters))
  return tenants
}

/** Stops waiting if no job has run for this time. */
const idleTimeoutMs = 180_000

async function runAll(tenants: readonly Tenant[]): Promise<void> {
  const countRuns = () => tenants.reduce((sum, { runs }) => sum + runs.size, 0)
  const countToRun = () => tenants.reduce((sum, { toRun }) => sum + toRun, 0)
  const progress = progressOf('jobs', tenants.length * (load.jobs * 0.9 + load.batches * load.jobsInBatch))
  let [isSubmitted, isDone] = [false, false]
  const watch = async () => {
    for (let [last, lastAtMs] = [0, performance.now()]; !isDone; await delay(50)) {
      if (countRuns() > last) [last, lastAtMs] = [countRuns(), performance.now()]
      isDone = isSubmitted && (countRuns() >= countToRun() || performance.now() - lastAtMs > idleTimeoutMs)
      progress(countRuns())
    }
  }
  const relays = tenants.flatMap((tenant) => tenant.clusters.map((each) => runRelay(tenant, each, () => isDone)))
  const submission = Promise.all(tenants.map((tenant) => submitLoad(tenant, load))).then(() => (isSubmitted = true))
  await Promise.all([submission, watch(), ...relays])
}

/** Waits until the queues are empty in three checks in a row, because a handled message may lead to another one. */
async function queuesEmpty(): Promise<void> {
  for (let count = 0; count < 3; await delay(200)) {
    const { queues }: any = await (await fetch(`${process.env['AWS_ENDPOINT_URL_SQS']}/_queues`)).json()
    const ownQueues = queues.filter(
      ({ name }: any) => /^(?:batches|events)(?:-|$)/.test(name) && !name.includes('dead'),
    )
    count = ownQueues.every(({ waiting, inFlight, delayed }: any) => waiting + inFlight + delayed === 0) ? count + 1 : 0
  }
}

const sumOf = (counts: readonly Handled[], name: keyof Handled): number =>
  counts.reduce((sum, each) => sum + each[name], 0)

async function stop(consumers: Children): Promise<void> {
  const counts: Handled[] = await consumers.requestAll(() => 'stop')
  const messages = sumOf(counts, 'batches') + sumOf(counts, 'events')
  for (const name of ['batches', 'events', 'failed', 'resent'] as const) print(`${name}: ${sumOf(counts, name)}`)
  claimAtLeast('messages handled', messages, amount(25_000, 20))
  // One in five messages is delivered twice, and about half of the duplicates reach the same process.
  claimAtLeast('messages redelivered after a success', sumOf(counts, 'redelivered'), Math.floor(messages / 20))
}

test('all counts are exact when messages are shuffled, duplicated and late', async () => {
  const tenants = await newTenants(amount(16, 1))
  await using consumers = startChildren(
    new URL('queue/consumer.ts', import.meta.url),
    Array.from({ length: processes }, (_, index) => [String(seed + index)]),
  )
  await runAll(tenants)
  await queuesEmpty()
  await stop(consumers)
  const items = await readTable()
  const itemsByTenant = tenants.map(({ caller }) =>
    items.filter(({ pk }) => String(pk).includes(caller.organisationId)),
  )
  for (const [claim, differencesOf] of Object.entries(differences)) {
    const differences = tenants.map(async (tenant, index) => differencesOf(tenant, itemsByTenant[index] ?? [], items))
    claimNone(claim, (await Promise.all(differences)).flat())
  }
  const jobCount = items.filter(({ sk }) => String(sk).startsWith('JOB#')).length
  claimNone(
    'quarantined records',
    items.filter(({ pk }) => String(pk).startsWith('QUARANTINE#')),
    `${jobCount} jobs`,
  )
})
