import { type Caller, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { isAhead, now } from '../clock.ts'
import { config } from '../config.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { newId } from '../id.ts'
import { isOperationTerminal, isOperation, type OperationRecord, parseOperation, type StoredStep } from './record.ts'
import { outboxRetryMs, enqueueOperation, type JobReference } from '../aws/queues.ts'
import { transitionOf, type Effects } from '../outbox/record.ts'
import { submitterOf } from '../submitter.ts'

/**
 * A use case stores an operation together with its change. A worker of the `installs` or `updates` queue claims the
 * operation, runs its steps and finishes it with the resulting change.
 */

export const operationLeaseMs = config.PLAT_OPERATION_LEASE_SECONDS * 1000
/** At least as long as the pauses between attempts, which also set the end of the lease. */
const maxLeaseMs = Math.max(operationLeaseMs, 60_000)

const isLeased = ({ leaseUntilMs }: OperationRecord): boolean => isAhead(leaseUntilMs, maxLeaseMs)

/** Thrown if another worker has the lease, or the operation has ended. This worker must stop and not compensate. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** `payload` is public; `plan` is for the worker. Steps are in order. */
export interface OperationRequest extends Pick<OperationRecord, 'type' | 'payload' | 'plan'> {
  steps: readonly string[]
}

export const newOperation = (caller: Caller, { type, payload, plan, steps }: OperationRequest): OperationRecord => ({
  id: newId('job'),
  organisationId: caller.organisationId,
  type,
  status: 'Queued',
  createdAtMs: now(),
  ...submitterOf(caller),
  payload,
  plan,
  steps: steps.map((name) => ({ name, status: 'Pending' })),
  leaseUntilMs: 0,
  attempts: 0,
})

export interface OperationChange extends Required<Pick<Effects, 'events' | 'transitions'>> {
  writes: WriteItem[]
}

const keyOf = ({ organisationId, id }: OperationRecord) => keys.job(organisationId, id)

const eventDataOf = ({ id, type, createdBy }: OperationRecord) => ({ jobId: id, type, createdBy })

export const queueChange = (operation: OperationRecord): OperationChange => ({
  writes: [
    create(keyOf(operation), {
      ...operation,
      payload: JSON.stringify(operation.payload),
      plan: JSON.stringify(operation.plan),
      steps: JSON.stringify(operation.steps),
      ...keys.operationIndexKeys(operation),
      ...keys.dueIndexKeys(operation.id, now() + outboxRetryMs),
    }),
  ],
  events: [{ name: 'job.queued', subject: operation.id, data: eventDataOf(operation) }],
  transitions: [transitionOf({}, undefined, 'Queued')],
})

export async function findOperation(reference: JobReference): Promise<OperationRecord | undefined> {
  const item = await get(keys.job(reference.organisationId, reference.jobId))
  return item && isOperation(item) ? parseOperation(item) : undefined
}

/** Returns undefined if the operation does not exist, has ended, or is leased to another worker. */
export async function claimOperation(
  reference: JobReference,
  leaseHolder: string,
): Promise<OperationRecord | undefined> {
  const operation = await findOperation(reference)
  if (operation === undefined || isOperationTerminal(operation) || isLeased(operation)) return undefined
  const claim = {
    status: 'Running' as const,
    leaseHolder,
    leaseUntilMs: now() + operationLeaseMs,
    attempts: operation.attempts + 1,
    startedAtMs: operation.startedAtMs ?? now(),
  }
  const dueAttributes = keys.dueIndexKeys(operation.id, claim.leaseUntilMs)
  const set = { ...claim, ...dueAttributes }
  const condition = {
    status: { is: operation.status },
    leaseHolder: unchangedCondition(operation.leaseHolder),
    leaseUntilMs: { is: operation.leaseUntilMs },
  }
  const failure = await commit(system(operation.organisationId), {
    writes: [patch(keyOf(operation), { set }, condition)],
    ...(operation.status === 'Queued' && {
      events: [{ name: 'job.started', subject: operation.id, data: eventDataOf(operation) }],
      transitions: [transitionOf({}, 'Queued', 'Running')],
    }),
  })
  return failure ? undefined : { ...operation, ...claim }
}

const heldCondition = ({ leaseHolder }: OperationRecord) => ({
  status: { is: 'Running' },
  leaseHolder: { is: leaseHolder },
})

export async function renewLease(operation: OperationRecord, steps = operation.steps): Promise<OperationRecord> {
  const leaseUntilMs = now() + operationLeaseMs
  const set = { steps: JSON.stringify(steps), leaseUntilMs, ...keys.dueIndexKeys(operation.id, leaseUntilMs) }
  const failure = await transact([patch(keyOf(operation), { set }, heldCondition(operation))])
  if (failure) throw new LeaseLost(operation.id)
  return { ...operation, steps, leaseUntilMs }
}

export async function releaseForRetry(
  operation: OperationRecord,
  pauseMs: number,
  steps = operation.steps,
): Promise<void> {
  const leaseUntilMs = now() + pauseMs
  const set = { steps: JSON.stringify(steps), leaseUntilMs, ...keys.dueIndexKeys(operation.id, leaseUntilMs) }
  const failure = await transact([patch(keyOf(operation), { set, remove: ['leaseHolder'] }, heldCondition(operation))])
  if (failure) throw new LeaseLost(operation.id)
}

export interface OperationEnd {
  status: 'Completed' | 'Failed'
  outcome: string
}

/** The first write fails if the lease is lost. */
export function finishChange(operation: OperationRecord, { status, outcome }: OperationEnd): OperationChange {
  const statusReason = status === 'Failed' ? failureReasonOf(operation) : undefined
  const set = {
    status,
    statusReason,
    outcome,
    steps: JSON.stringify(operation.steps.map((step) => finishStep(step, status))),
    completedAtMs: now(),
    leaseUntilMs: 0,
    ...keys.jobStatusIndexKey(operation, status),
  }
  const name = status === 'Failed' ? 'job.failed' : 'job.completed'
  const data = { ...eventDataOf(operation), previousStatus: 'Running' as const, statusReason }
  return {
    writes: [patch(keyOf(operation), { set, remove: ['duepk', 'duesk'] }, heldCondition(operation))],
    events: [{ name, subject: operation.id, data }],
    transitions: [transitionOf({}, 'Running', status)],
  }
}

const failureReasonOf = ({ type }: OperationRecord) =>
  type === 'ModuleInstall' || type === 'ModuleUninstall'
    ? ('module_operation_failed' as const)
    : ('update_failed' as const)

function finishStep(step: StoredStep, status: OperationEnd['status']): StoredStep {
  if (step.status === 'Running') return { ...step, status, completedAtMs: now() }
  return step.status === 'Pending' ? { ...step, status: 'Skipped' } : step
}

/** Enqueues an operation without a lease: its message may have been lost, or its worker may have failed. */
export async function requeueIfStalled(operation: OperationRecord): Promise<void> {
  const { organisationId, id, type, status, leaseUntilMs } = operation
  const isTerminal = isOperationTerminal(operation)
  if (!isTerminal && !isLeased(operation)) await enqueueOperation({ organisationId, jobId: id, type })
  const dueAtMs = isLeased(operation) ? leaseUntilMs : now() + 2 * outboxRetryMs
  const change = isTerminal ? { remove: ['duepk', 'duesk'] } : { set: keys.dueIndexKeys(id, dueAtMs) }
  // The condition fails after a concurrent claim or renewal, which has set the due time itself.
  await transact([patch(keyOf(operation), change, { status: { is: status }, leaseUntilMs: { is: leaseUntilMs } })])
}
