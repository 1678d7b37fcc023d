import { failpoint } from '../lib/failpoint.ts'
import { newId } from '../id.ts'
import { log } from '../log.ts'
import { claimOperation, LeaseLost } from './operation.ts'
import { type OperationLease, holdLease, withRenewal } from './lease.ts'
import { type OperationType } from './record.ts'
import { enqueueOperation, type OperationReference } from '../aws/queues.ts'

/**
 * The worker of operations. It may be ended between any two lines, hear of an operation twice or late, or not hear what the
 * store has answered: the next try walks all steps again, and the operation ends once, done or undone.
 */

/** Tries of one operation. */
const attemptLimit = 5
/** Before the second try; each further one waits twice as long. */
const firstPauseMs = 5000

/** What an error means for the operation that it ended. */
export interface ErrorClassification {
  /** For people. */
  message: string
  /** Trying again would not help. */
  isFinal: boolean
  /** For the log; absent where the message says it all. */
  cause?: unknown
}

/** How the operations of one type are done. */
export interface OperationHandler {
  /** Does it and ends it, from the first step on at every try. */
  work: (journal: OperationLease) => Promise<void>
  /** What ends it where work cannot: everything is as before, or as near to it as can be. */
  giveUp: (journal: OperationLease, reason: ErrorClassification) => Promise<void>
  judge: (error: unknown) => ErrorClassification
}

/** An operation of a type without a kind is left alone. */
export type OperationHandlers = Partial<Record<OperationType, OperationHandler>>

/** Kinds, or what loads them once there is an operation to do. */
export type OperationHandlersOrLoader = OperationHandlers | (() => Promise<OperationHandlers>)

/**
 * Does an announced operation, as far as nobody else does it or has done it. Throws what keeps the store from saying so; the
 * message then comes again.
 */
export const runOperation = (reference: OperationReference, kinds: OperationHandlersOrLoader): Promise<void> =>
  asOnlyOne(reference, kinds, async (journal, kind) => {
    const { attempts } = journal.operation
    if (attempts > attemptLimit) return kind.giveUp(journal, exhausted)
    try {
      await kind.work(journal)
    } catch (error) {
      if (error instanceof LeaseLost) throw error
      const reason = kind.judge(error)
      const { id: jobId, type } = journal.operation
      const { message, isFinal, ...more } = reason
      log('error', 'A try of an operation failed', { jobId, type, attempts, reason: message, ...more })
      if (isFinal || attempts === attemptLimit) return kind.giveUp(journal, reason)
      const pauseMs = firstPauseMs * 2 ** (attempts - 1)
      await journal.leave(pauseMs, message)
      await enqueueOperation(reference, Math.ceil(pauseMs / 1000))
    }
  })

const exhausted: ErrorClassification = {
  message: `It was begun ${attemptLimit} times, and never ended.`,
  isFinal: true,
}
const buried: ErrorClassification = { message: 'Its message could not be handled.', isFinal: true }

/** Gives up an operation whose message nobody could handle; one that somebody is at, or that is over, stays as it is. */
export const deadLetterOperation = (reference: OperationReference, kinds: OperationHandlersOrLoader): Promise<void> =>
  asOnlyOne(reference, kinds, (journal, kind) => kind.giveUp(journal, buried))

async function asOnlyOne(
  reference: OperationReference,
  kinds: OperationHandlersOrLoader,
  work: (journal: OperationLease, kind: OperationHandler) => Promise<void>,
): Promise<void> {
  const begun = await claimOperation(reference, newId('lease'))
  if (begun === undefined) return
  const kind = (typeof kinds === 'function' ? await kinds() : kinds)[begun.type]
  if (kind === undefined) return
  await failpoint('operation.begun')
  const journal = holdLease(begun)
  try {
    await withRenewal(journal, () => work(journal, kind))
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error
    log('warn', 'Somebody else does the operation by now', { ...reference })
  }
}
