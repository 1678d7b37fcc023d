import { type Caller, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { sameAs } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch, type Step } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { newId } from '../id.ts'
import { isEnded, isOperation, type OperationRow, parseOperation, type StoredStep } from './record.ts'
import { announceAgainMs, announceOperation, type OperationReference } from '../aws/queues.ts'
import { moveOf, type Told } from '../outbox/record.ts'

/**
 * Operations from their request to their end: a verb stores one with the change that asks for it, and a worker of the
 * `updates` queue claims it, journals its steps, and ends it with the change that it was for.
 */

/** A worker that has said nothing for so long has gone: the next one begins the operation anew. */
export const operationLeaseMs = config.PLAT_OPERATION_LEASE_SECONDS * 1000

/** Thrown to a worker whose operation somebody else does by now, or has ended: it stops, and undoes nothing. */
export class OperationLost extends Error {
  override readonly name = 'OperationLost'
}

/** What is asked for: its facts for callers and for its worker, and the names of its steps in their order. */
export interface OperationRequest extends Pick<OperationRow, 'type' | 'payload' | 'plan'> {
  steps: readonly string[]
}

/** An operation that nobody has begun. It is stored by the step of `queueing`, and then announced. */
export const newOperation = (
  { organisationId, userId }: Caller,
  { type, payload, plan, steps }: OperationRequest,
): OperationRow => ({
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
export interface OperationChange extends Required<Pick<Told, 'events' | 'moves'>> {
  steps: Step[]
}

const keyOf = ({ organisationId, id }: OperationRow) => keys.job(organisationId, id)

const factsOf = ({ id, type, createdBy }: OperationRow) => ({ jobId: id, type, createdBy })

/** The part of a change that stores a new operation. */
export const queueing = (operation: OperationRow): OperationChange => ({
  steps: [
    create(keyOf(operation), {
      ...operation,
      payload: JSON.stringify(operation.payload),
      plan: JSON.stringify(operation.plan),
      steps: JSON.stringify(operation.steps),
      ...keys.operationFiling(operation),
      ...keys.due(operation.id, now() + announceAgainMs),
    }),
  ],
  events: [{ name: 'job.queued', subject: operation.id, data: factsOf(operation) }],
  moves: [moveOf({}, undefined, 'Queued')],
})

/** An operation by its reference. One call. */
export async function findOperation({ organisationId, jobId }: OperationReference): Promise<OperationRow | undefined> {
  const item = await get(keys.job(organisationId, jobId))
  return item && isOperation(item) ? parseOperation(item) : undefined
}

/**
 * Claims an operation for a worker, whose id is its own of this one try; undefined where there is nothing to do: it is over,
 * or somebody else is at it. Two calls, and a message at the first try.
 */
export async function beginOperation(
  reference: OperationReference,
  workerId: string,
): Promise<OperationRow | undefined> {
  const row = await findOperation(reference)
  if (row === undefined || isEnded(row) || row.workUntilMs > now()) return undefined
  const claim = {
    status: 'Running' as const,
    workerId,
    workUntilMs: now() + operationLeaseMs,
    attempts: row.attempts + 1,
    startedAtMs: row.startedAtMs ?? now(),
  }
  const set = { ...claim, ...keys.jobStatusFiling(row, 'Running'), ...keys.due(row.id, claim.workUntilMs) }
  const asRead = { status: { is: row.status }, workerId: sameAs(row.workerId), workUntilMs: { is: row.workUntilMs } }
  const refusal = await commit(system(row.organisationId), {
    steps: [patch(keyOf(row), { set }, asRead)],
    ...(row.status === 'Queued' && {
      events: [{ name: 'job.started', subject: row.id, data: factsOf(row) }],
      moves: [moveOf({}, 'Queued', 'Running')],
    }),
  })
  return refusal ? undefined : { ...row, ...claim }
}

const isMine = ({ workerId }: OperationRow) => ({ status: { is: 'Running' }, workerId: { is: workerId } })

/** Says that the worker is still at it. Throws `OperationLost`. One call. */
export async function renew(operation: OperationRow, steps = operation.steps): Promise<OperationRow> {
  const workUntilMs = now() + operationLeaseMs
  const set = { steps: JSON.stringify(steps), workUntilMs, ...keys.due(operation.id, workUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set }, isMine(operation))])
  if (refusal) throw new OperationLost(operation.id)
  return { ...operation, steps, workUntilMs }
}

/**
 * Leaves an operation to the next try, which may begin after a pause: this worker has nothing to say any more. Throws
 * `OperationLost`. One call.
 */
export async function handBack(operation: OperationRow, pauseMs: number, steps = operation.steps): Promise<void> {
  const workUntilMs = now() + pauseMs
  const set = { steps: JSON.stringify(steps), workUntilMs, ...keys.due(operation.id, workUntilMs) }
  const refusal = await transact([patch(keyOf(operation), { set, remove: ['workerId'] }, isMine(operation))])
  if (refusal) throw new OperationLost(operation.id)
}

/** How an operation ends; `outcome` is a sentence for people. */
export interface OperationEnd {
  status: 'Completed' | 'Failed'
  outcome: string
}

/** The part of a change that ends an operation; its first step is refused where the worker has lost it. */
export function ending(operation: OperationRow, { status, outcome }: OperationEnd): OperationChange {
  const statusReason = status === 'Failed' ? reasonOf(operation) : undefined
  const set = {
    status,
    statusReason,
    outcome,
    steps: JSON.stringify(operation.steps.map((step) => atEnd(step, status))),
    completedAtMs: now(),
    workUntilMs: 0,
    ...keys.jobStatusFiling(operation, status),
  }
  const name = status === 'Failed' ? 'job.failed' : 'job.completed'
  const data = { ...factsOf(operation), previousStatus: 'Running' as const, statusReason }
  return {
    steps: [patch(keyOf(operation), { set, remove: ['duepk', 'duesk'] }, isMine(operation))],
    events: [{ name, subject: operation.id, data }],
    moves: [moveOf({}, 'Running', status)],
  }
}

const reasonOf = ({ type }: OperationRow) =>
  type === 'ModuleInstall' || type === 'ModuleUninstall'
    ? ('module_operation_failed' as const)
    : ('update_failed' as const)

/** The step that was under way ends as the operation does; those behind it were not begun. */
function atEnd(step: StoredStep, status: OperationEnd['status']): StoredStep {
  if (step.status === 'Running') return { ...step, status, completedAtMs: now() }
  return step.status === 'Pending' ? { ...step, status: 'Skipped' } : step
}

/** What the sweep does with one that is due: it is announced again, unless its worker is at it. One call, and a message. */
export async function lookAtOperation(row: OperationRow): Promise<void> {
  const isAtWork = row.workUntilMs > now()
  if (!isEnded(row) && !isAtWork) await announceOperation({ organisationId: row.organisationId, jobId: row.id })
  const dueAtMs = isAtWork ? row.workUntilMs : now() + 2 * announceAgainMs
  const change = isEnded(row) ? { remove: ['duepk', 'duesk'] } : { set: keys.due(row.id, dueAtMs) }
  // Who claims or renews it meanwhile files it anew.
  await transact([patch(keyOf(row), change, { status: { is: row.status }, workUntilMs: { is: row.workUntilMs } })])
}
