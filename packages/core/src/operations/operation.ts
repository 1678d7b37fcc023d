import { type Caller, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { newId } from '../id.ts'
import { isOperationTerminal, isOperation, type OperationRecord, parseOperation, type StoredStep } from './record.ts'
import { outboxRetryMs, enqueueOperation, type OperationReference } from '../aws/queues.ts'
import { transitionOf, type Effects } from '../outbox/record.ts'

/**
 * Operations of the platform: a use case stores one with its change, and a worker of the `updates` queue claims it,
 * runs its steps and finishes it with the resulting change.
 */

/** Lease time before another worker restarts the operation. */
export const operationLeaseMs = config.PLAT_OPERATION_LEASE_SECONDS * 1000

/** The worker lost the operation to another one, or it has ended. The worker stops without compensation. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The public payload, the worker's plan, and the names of the steps in order. */
export interface OperationRequest extends Pick<OperationRecord, 'type' | 'payload' | 'plan'> {
  steps: readonly string[]
}

/** A new operation. `queueChange` stores it; then it is enqueued. */
export const newOperation = (
  { organisationId, userId }: Caller,
  { type, payload, plan, steps }: OperationRequest,
): OperationRecord => ({
  id: newId('job'),
  organisationId,
  type,
  status: 'Queued',
  createdAtMs: now(),
  createdBy: userId,
  payload,
  plan,
  steps: steps.map((name) => ({ name, status: 'Pending' })),
  leaseUntilMs: 0,
  attempts: 0,
})

/** A part of a change: writes and effects. */
export interface OperationChange extends Required<Pick<Effects, 'events' | 'transitions'>> {
  writes: WriteItem[]
}

const keyOf = ({ organisationId, id }: OperationRecord) => keys.job(organisationId, id)

const factsOf = ({ id, type, createdBy }: OperationRecord) => ({ jobId: id, type, createdBy })

/** The part of a change that stores a new operation. */
export const queueChange = (operation: OperationRecord): OperationChange => ({
  writes: [
    create(keyOf(operation), {
      ...operation,
      payload: JSON.stringify(operation.payload),
      plan: JSON.stringify(operation.plan),
      steps: JSON.stringify(operation.steps),
      ...keys.operationIndexKeys(operation),
      ...keys.due(operation.id, now() + outboxRetryMs),
    }),
  ],
  events: [{ name: 'job.queued', subject: operation.id, data: factsOf(operation) }],
  transitions: [transitionOf({}, undefined, 'Queued')],
})

/** An operation by its reference. One call. */
export async function findOperation({
  organisationId,
  jobId,
}: OperationReference): Promise<OperationRecord | undefined> {
  const item = await get(keys.job(organisationId, jobId))
  return item && isOperation(item) ? parseOperation(item) : undefined
}

/**
 * Claims an operation for one attempt of a worker; undefined if it has ended or another worker has it. Two calls, and a
 * message at the first attempt.
 */
export async function claimOperation(
  reference: OperationReference,
  leaseHolder: string,
): Promise<OperationRecord | undefined> {
  const row = await findOperation(reference)
  if (row === undefined || isOperationTerminal(row) || row.leaseUntilMs > now()) return undefined
  const claim = {
    status: 'Running' as const,
    leaseHolder,
    leaseUntilMs: now() + operationLeaseMs,
    attempts: row.attempts + 1,
    startedAtMs: row.startedAtMs ?? now(),
  }
  const set = { ...claim, ...keys.jobStatusIndexKey(row, 'Running'), ...keys.due(row.id, claim.leaseUntilMs) }
  const asRead = {
    status: { is: row.status },
    leaseHolder: unchanged(row.leaseHolder),
    leaseUntilMs: { is: row.leaseUntilMs },
  }
  const refusal = await commit(system(row.organisationId), {
    writes: [patch(keyOf(row), { set }, asRead)],
    ...(row.status === 'Queued' && {
      events: [{ name: 'job.started', subject: row.id, data: factsOf(row) }],
      transitions: [transitionOf({}, 'Queued', 'Running')],
    }),
  })
  return refusal ? undefined : { ...row, ...claim }
}

const isMine = ({ leaseHolder }: OperationRecord) => ({ status: { is: 'Running' }, leaseHolder: { is: leaseHolder } })

/** Renews the lease. Throws `LeaseLost`. One call. */
export async function renewLease(operation: OperationRecord, steps = operation.steps): Promise<OperationRecord> {
  const leaseUntilMs = now() + operationLeaseMs
  const set = { steps: JSON.stringify(steps), leaseUntilMs, ...keys.due(operation.id, leaseUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set }, isMine(operation))])
  if (refusal) throw new LeaseLost(operation.id)
  return { ...operation, steps, leaseUntilMs }
}

/** Releases an operation for the next attempt, after a pause. Throws `LeaseLost`. One call. */
export async function releaseForRetry(
  operation: OperationRecord,
  pauseMs: number,
  steps = operation.steps,
): Promise<void> {
  const leaseUntilMs = now() + pauseMs
  const set = { steps: JSON.stringify(steps), leaseUntilMs, ...keys.due(operation.id, leaseUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set, remove: ['leaseHolder'] }, isMine(operation))])
  if (refusal) throw new LeaseLost(operation.id)
}

/** The end of an operation; `outcome` is a sentence for users. */
export interface OperationEnd {
  status: 'Completed' | 'Failed'
  outcome: string
}

/** The part of a change that ends an operation. Its first write fails if the lease is lost. */
export function finishChange(operation: OperationRecord, { status, outcome }: OperationEnd): OperationChange {
  const statusReason = status === 'Failed' ? reasonOf(operation) : undefined
  const set = {
    status,
    statusReason,
    outcome,
    steps: JSON.stringify(operation.steps.map((step) => atEnd(step, status))),
    completedAtMs: now(),
    leaseUntilMs: 0,
    ...keys.jobStatusIndexKey(operation, status),
  }
  const name = status === 'Failed' ? 'job.failed' : 'job.completed'
  const data = { ...factsOf(operation), previousStatus: 'Running' as const, statusReason }
  return {
    writes: [patch(keyOf(operation), { set, remove: ['duepk', 'duesk'] }, isMine(operation))],
    events: [{ name, subject: operation.id, data }],
    transitions: [transitionOf({}, 'Running', status)],
  }
}

const reasonOf = ({ type }: OperationRecord) =>
  type === 'ModuleInstall' || type === 'ModuleUninstall'
    ? ('module_operation_failed' as const)
    : ('update_failed' as const)

/** The running step ends as the operation does; later ones stay pending. */
function atEnd(step: StoredStep, status: OperationEnd['status']): StoredStep {
  if (step.status === 'Running') return { ...step, status, completedAtMs: now() }
  return step.status === 'Pending' ? { ...step, status: 'Skipped' } : step
}

/** Called by the sweep for a due operation: enqueues it again unless a worker has it. One call and a message. */
export async function requeueIfStalled(row: OperationRecord): Promise<void> {
  const isAtWork = row.leaseUntilMs > now()
  if (!isOperationTerminal(row) && !isAtWork)
    await enqueueOperation({ organisationId: row.organisationId, jobId: row.id })
  const dueAtMs = isAtWork ? row.leaseUntilMs : now() + 2 * outboxRetryMs
  const change = isOperationTerminal(row) ? { remove: ['duepk', 'duesk'] } : { set: keys.due(row.id, dueAtMs) }
  // A concurrent claim or renewal schedules it again.
  await transact([patch(keyOf(row), change, { status: { is: row.status }, leaseUntilMs: { is: row.leaseUntilMs } })])
}
