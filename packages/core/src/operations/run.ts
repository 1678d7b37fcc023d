import { failpoint } from '../lib/failpoint.ts'
import { newId } from '../id.ts'
import { log } from '../log.ts'
import { claimOperation, LeaseLost } from './operation.ts'
import { type OperationLease, holdLease, withRenewal } from './lease.ts'
import { type OperationType } from './record.ts'
import { enqueueOperation, type OperationReference } from '../aws/queues.ts'

/**
 * The worker of operations. Crashes, repeated or late messages and lost responses are safe: the next attempt runs all
 * steps again, and the operation completes or is compensated once.
 */

/** Attempts per operation. */
const attemptLimit = 5
/** Before the second attempt; doubled for each further one. */
const firstPauseMs = 5000

/** The meaning of an error for its operation. */
export interface ErrorClassification {
  /** For users. */
  message: string
  /** A retry would not help. */
  isFinal: boolean
  /** For the log; absent if the message is sufficient. */
  cause?: unknown
}

/** The handler of one operation type. */
export interface OperationHandler {
  /** Runs and finishes the operation; every attempt starts at the first step. */
  run: (journal: OperationLease) => Promise<void>
  /** Ends a failed operation and restores the previous state as far as possible. */
  compensate: (journal: OperationLease, reason: ErrorClassification) => Promise<void>
  classifyError: (error: unknown) => ErrorClassification
}

/** Operations of other types are ignored. */
export type OperationHandlers = Partial<Record<OperationType, OperationHandler>>

/** The handlers, or a function that loads them on demand. */
export type OperationHandlersOrLoader = OperationHandlers | (() => Promise<OperationHandlers>)

/**
 * Runs an enqueued operation unless another worker has it or it has ended. Throws store errors, so that the message is
 * redelivered.
 */
export const runOperation = (reference: OperationReference, kinds: OperationHandlersOrLoader): Promise<void> =>
  asOnlyOne(reference, kinds, async (journal, kind) => {
    const { attempts } = journal.operation
    if (attempts > attemptLimit) return kind.compensate(journal, exhausted)
    try {
      await kind.run(journal)
    } catch (error) {
      if (error instanceof LeaseLost) throw error
      const reason = kind.classifyError(error)
      const { id: jobId, type } = journal.operation
      const { message, isFinal, ...more } = reason
      log('error', 'Operation attempt failed', { jobId, type, attempts, reason: message, ...more })
      if (isFinal || attempts === attemptLimit) return kind.compensate(journal, reason)
      const pauseMs = firstPauseMs * 2 ** (attempts - 1)
      await journal.releaseForRetry(pauseMs, message)
      await enqueueOperation(reference, Math.ceil(pauseMs / 1000))
    }
  })

const exhausted: ErrorClassification = {
  message: `It was started ${attemptLimit} times without completing.`,
  isFinal: true,
}
const buried: ErrorClassification = { message: 'Its message could not be processed.', isFinal: true }

/** Fails an operation with a dead-lettered message; a claimed or ended one is unchanged. */
export const deadLetterOperation = (reference: OperationReference, kinds: OperationHandlersOrLoader): Promise<void> =>
  asOnlyOne(reference, kinds, (journal, kind) => kind.compensate(journal, buried))

async function asOnlyOne(
  reference: OperationReference,
  kinds: OperationHandlersOrLoader,
  run: (journal: OperationLease, kind: OperationHandler) => Promise<void>,
): Promise<void> {
  const begun = await claimOperation(reference, newId('lease'))
  if (begun === undefined) return
  const kind = (typeof kinds === 'function' ? await kinds() : kinds)[begun.type]
  if (kind === undefined) return
  await failpoint('operation.begun')
  const journal = holdLease(begun)
  try {
    await withRenewal(journal, () => run(journal, kind))
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error
    log('warn', 'Operation lease lost', { ...reference })
  }
}
