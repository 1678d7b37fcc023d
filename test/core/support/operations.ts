import type { Caller } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { newNonce } from '@platform/core/id'
import * as Operation from '@platform/core/operations/operation'
import type { OperationRecord, OperationType } from '@platform/core/operations/record'

export async function pendingOperation(
  caller: Caller,
  type: OperationType = 'ModuleInstall',
): Promise<OperationRecord> {
  const operation = Operation.newOperation(caller, {
    type,
    payload: { moduleId: 'hello' },
    plan: { secret: 'of the worker' },
    steps: ['deploy', 'publish'],
  })
  await commit(caller, Operation.queueChange(operation))
  return operation
}

export const referenceOf = ({ organisationId, id }: OperationRecord) => ({ organisationId, jobId: id })

export async function claimed(operation: OperationRecord, leaseHolder = newNonce()): Promise<OperationRecord> {
  const record = await Operation.claimOperation(referenceOf(operation), leaseHolder)
  if (record === undefined) throw new Error('Another worker has the lease.')
  return record
}

/** Ends an operation. Returns false if the lease was lost. */
export const finishOperation = async (
  { ...operation }: OperationRecord,
  end: Operation.OperationEnd,
): Promise<boolean> => {
  const { organisationId } = operation
  return (await commit({ kind: 'system', organisationId }, Operation.finishChange(operation, end))) === undefined
}
