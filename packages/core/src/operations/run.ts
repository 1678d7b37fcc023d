import { failpoint } from '../lib/failpoint.ts'
import { newId } from '../id.ts'
import { log } from '../log.ts'
import { claimOperation, LeaseLost } from './operation.ts'
import { type OperationLease, holdLease, withRenewal } from './lease.ts'
import type { OperationType } from './record.ts'
import { enqueueOperation, type JobReference } from '../aws/queues.ts'

/**
 * Crashes, repeated or late messages and lost responses are safe: the next attempt repeats all steps, and the operation
 * completes or is compensated once.
 */

const maxAttempts = 5
const firstPauseMs = 5000

export interface ErrorClassification {
  message: string
  isFinal: boolean
  /** For the log. Absent if the message is sufficient. */
  cause?: unknown
}

export interface OperationHandler {
  /** Every attempt starts at the first step and must finish the operation. */
  run: (lease: OperationLease) => Promise<void>
  /** Fails the operation and restores the previous state as far as possible. */
  compensate: (lease: OperationLease, reason: ErrorClassification) => Promise<void>
  classifyError: (error: unknown) => ErrorClassification
}

/** Operations without a handler are ignored. */
export type OperationHandlers = Partial<Record<OperationType, OperationHandler>>

export type OperationHandlersOrLoader = OperationHandlers | (() => Promise<OperationHandlers>)

/** Throws store errors, so that the message is redelivered. */
export const runOperation = (reference: JobReference, handlers: OperationHandlersOrLoader): Promise<void> =>
  withClaim(reference, handlers, async (lease, handler) => {
    const { attempts } = lease.operation
    if (attempts > maxAttempts) return handler.compensate(lease, exhaustedReason)
    try {
      await handler.run(lease)
    } catch (error) {
      if (error instanceof LeaseLost) throw error
      const reason = handler.classifyError(error)
      const { id: jobId, type } = lease.operation
      const { message, isFinal, ...fields } = reason
      log('error', 'Operation attempt failed', { jobId, type, attempts, reason: message, ...fields })
      if (isFinal || attempts === maxAttempts) return handler.compensate(lease, reason)
      const pauseMs = firstPauseMs * 2 ** (attempts - 1)
      await lease.releaseForRetry(pauseMs, message)
      await enqueueOperation({ ...reference, type }, Math.ceil(pauseMs / 1000))
    }
  })

const exhaustedReason: ErrorClassification = {
  message: `It was started ${maxAttempts} times without completing.`,
  isFinal: true,
}
const deadLetteredReason: ErrorClassification = { message: 'Its message could not be processed.', isFinal: true }

/** Skips operations that have ended or are claimed. */
export const deadLetterOperation = (reference: JobReference, handlers: OperationHandlersOrLoader): Promise<void> =>
  withClaim(reference, handlers, (lease, handler) => handler.compensate(lease, deadLetteredReason))

async function withClaim(
  reference: JobReference,
  handlers: OperationHandlersOrLoader,
  run: (lease: OperationLease, handler: OperationHandler) => Promise<void>,
): Promise<void> {
  const operation = await claimOperation(reference, newId('lease'))
  if (operation === undefined) return
  const handler = (typeof handlers === 'function' ? await handlers() : handlers)[operation.type]
  if (handler === undefined) return
  await failpoint('operation.begun')
  const lease = holdLease(operation)
  try {
    await withRenewal(lease, () => run(lease, handler))
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error
    log('warn', 'Operation lease lost', { ...reference })
  }
}
