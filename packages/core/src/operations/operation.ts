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
 * Operations from their request to their end: a verb stores one with the change that asks for it, and a worker of the
 * `updates` queue claims it, journals its steps, and ends it with the change that it was for.
 */

/** A worker that has said nothing for so long has gone: the next one begins the operation anew. */
export const operationLeaseMs = config.PLAT_OPERATION_LEASE_SECONDS * 1000

/** Thrown to a worker whose operation somebody else does by now, or has ended: it stops, and undoes nothing. */
export class LeaseLost extends Error {
  override readonly name = 'OperationLost'
}

/** What is asked for: its facts for callers and for its worker, and the names of its steps in their order. */
export interface OperationRequest extends Pick<OperationRecord, 'type' | 'payload' | 'plan'> {
  steps: readonly string[]
}

/** An operation that nobody has begun. It is stored by the step of `queueing`, and then announced. */
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
  workUntilMs: 0,
  attempts: 0,
})

/** Part of a change: what is written, and what it tells. */
export interface OperationChange extends Required<Pick<Effects, 'events' | 'moves'>> {
  steps: WriteItem[]
}

const keyOf = ({ organisationId, id }: OperationRecord) => keys.job(organisationId, id)

const factsOf = ({ id, type, createdBy }: OperationRecord) => ({ jobId: id, type, createdBy })

/** The part of a change that stores a new operation. */
export const queueChange = (operation: OperationRecord): OperationChange => ({
  steps: [
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
  moves: [transitionOf({}, undefined, 'Queued')],
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
 * Claims an operation for a worker, whose id is its own of this one try; undefined where there is nothing to do: it is over,
 * or somebody else is at it. Two calls, and a message at the first try.
 */
export async function claimOperation(
  reference: OperationReference,
  workerId: string,
): Promise<OperationRecord | undefined> {
  const row = await findOperation(reference)
  if (row === undefined || isOperationTerminal(row) || row.workUntilMs > now()) return undefined
  const claim = {
    status: 'Running' as const,
    workerId,
    workUntilMs: now() + operationLeaseMs,
    attempts: row.attempts + 1,
    startedAtMs: row.startedAtMs ?? now(),
  }
  const set = { ...claim, ...keys.jobStatusIndexKey(row, 'Running'), ...keys.due(row.id, claim.workUntilMs) }
  const asRead = { status: { is: row.status }, workerId: unchanged(row.workerId), workUntilMs: { is: row.workUntilMs } }
  const refusal = await commit(system(row.organisationId), {
    steps: [patch(keyOf(row), { set }, asRead)],
    ...(row.status === 'Queued' && {
      events: [{ name: 'job.started', subject: row.id, data: factsOf(row) }],
      moves: [transitionOf({}, 'Queued', 'Running')],
    }),
  })
  return refusal ? undefined : { ...row, ...claim }
}

const isMine = ({ workerId }: OperationRecord) => ({ status: { is: 'Running' }, workerId: { is: workerId } })

/** Says that the worker is still at it. Throws `OperationLost`. One call. */
export async function renewLease(operation: OperationRecord, steps = operation.steps): Promise<OperationRecord> {
  const workUntilMs = now() + operationLeaseMs
  const set = { steps: JSON.stringify(steps), workUntilMs, ...keys.due(operation.id, workUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set }, isMine(operation))])
  if (refusal) throw new LeaseLost(operation.id)
  return { ...operation, steps, workUntilMs }
}

/**
 * Leaves an operation to the next try, which may begin after a pause: this worker has nothing to say any more. Throws
 * `OperationLost`. One call.
 */
export async function releaseForRetry(
  operation: OperationRecord,
  pauseMs: number,
  steps = operation.steps,
): Promise<void> {
  const workUntilMs = now() + pauseMs
  const set = { steps: JSON.stringify(steps), workUntilMs, ...keys.due(operation.id, workUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set, remove: ['workerId'] }, isMine(operation))])
  if (refusal) throw new LeaseLost(operation.id)
}

/** How an operation ends; `outcome` is a sentence for people. */
export interface OperationEnd {
  status: 'Completed' | 'Failed'
  outcome: string
}

/** The part of a change that ends an operation; its first step is refused where the worker has lost it. */
export function finishChange(operation: OperationRecord, { status, outcome }: OperationEnd): OperationChange {
  const statusReason = status === 'Failed' ? reasonOf(operation) : undefined
  const set = {
    status,
    statusReason,
    outcome,
    steps: JSON.stringify(operation.steps.map((step) => atEnd(step, status))),
    completedAtMs: now(),
    workUntilMs: 0,
    ...keys.jobStatusIndexKey(operation, status),
  }
  const name = status === 'Failed' ? 'job.failed' : 'job.completed'
  const data = { ...factsOf(operation), previousStatus: 'Running' as const, statusReason }
  return {
    steps: [patch(keyOf(operation), { set, remove: ['duepk', 'duesk'] }, isMine(operation))],
    events: [{ name, subject: operation.id, data }],
    moves: [transitionOf({}, 'Running', status)],
  }
}

const reasonOf = ({ type }: OperationRecord) =>
  type === 'ModuleInstall' || type === 'ModuleUninstall'
    ? ('module_operation_failed' as const)
    : ('update_failed' as const)

/** The step that was under way ends as the operation does; those behind it were not begun. */
function atEnd(step: StoredStep, status: OperationEnd['status']): StoredStep {
  if (step.status === 'Running') return { ...step, status, completedAtMs: now() }
  return step.status === 'Pending' ? { ...step, status: 'Skipped' } : step
}

/** What the sweep does with one that is due: it is announced again, unless its worker is at it. One call, and a message. */
export async function requeueIfStalled(row: OperationRecord): Promise<void> {
  const isAtWork = row.workUntilMs > now()
  if (!isOperationTerminal(row) && !isAtWork)
    await enqueueOperation({ organisationId: row.organisationId, jobId: row.id })
  const dueAtMs = isAtWork ? row.workUntilMs : now() + 2 * outboxRetryMs
  const change = isOperationTerminal(row) ? { remove: ['duepk', 'duesk'] } : { set: keys.due(row.id, dueAtMs) }
  // Who claims or renews it meanwhile files it anew.
  await transact([patch(keyOf(row), change, { status: { is: row.status }, workUntilMs: { is: row.workUntilMs } })])
}
