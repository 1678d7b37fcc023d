import { type Caller } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { newNonce } from '@platform/core/id'
import {
  claimOperation,
  finishChange,
  newOperation,
  type OperationEnd,
  queueChange,
} from '@platform/core/operations/operation'
import { type OperationRecord, type OperationType } from '@platform/core/operations/record'

/** Jobs of the platform on itself, as a verb makes them and a worker does them. */

/** An operation that waits for its worker. */
export async function pendingOperation(
  caller: Caller,
  type: OperationType = 'ModuleInstall',
): Promise<OperationRecord> {
  const request = {
    type,
    payload: { moduleId: 'hello' },
    plan: { secret: 'of the worker' },
    steps: ['deploy', 'publish'],
  }
  const operation = newOperation(caller, request)
  await commit(caller, queueChange(operation))
  return operation
}

export const referenceOf = ({ organisationId, id }: OperationRecord) => ({ organisationId, jobId: id })

/** An operation as the worker holds it that has just begun it. */
export async function claimed(operation: OperationRecord, workerId = newNonce()): Promise<OperationRecord> {
  const record = await claimOperation(referenceOf(operation), workerId)
  if (record === undefined) throw new Error('Somebody else is at it.')
  return record
}

/** Ends an operation; answers whether it was the worker's to end. */
export const finishOperation = async ({ ...operation }: OperationRecord, end: OperationEnd): Promise<boolean> =>
  (await commit({ kind: 'system', organisationId: operation.organisationId }, finishChange(operation, end))) ===
  undefined
