import { newId } from '@platform/core/id'
import { log } from '@platform/core/log'
import { beginOperation, OperationLost } from '@platform/core/operation'
import { type OperationRow } from '@platform/core/operation-row'
import { announceOperation, type OperationReference } from '@platform/core/queue'
import { failpoint } from '@platform/core/failpoint'
import { type ModuleRuntime } from '../runtime/port.ts'
import { judge, type Judgement, OperationFailure } from './failure.ts'
import { install } from './install.ts'
import { type Journal, openJournal, whileKept } from './journal.ts'
import { moduleRuntime } from './runtime.ts'
import { undoInstall } from './undo.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

/**
 * The worker of operations on modules. It may be ended between any two lines, hear of an operation twice or late, or not hear
 * what the store has answered: the next try walks all steps again, and the operation ends once, done or undone.
 */

/** Tries of one operation. */
const attemptLimit = 5
/** Before the second try; each further one waits twice as long. */
const firstPauseMs = 5000

interface Kind {
  work: (journal: Journal, runtime: ModuleRuntime) => Promise<void>
  /** What ends it where work cannot. */
  giveUp: (journal: Journal, runtime: ModuleRuntime, reason: Judgement) => Promise<void>
}

const kinds: Partial<Record<OperationRow['type'], Kind>> = {
  ModuleInstall: { work: install, giveUp: undoInstall },
  ModuleUninstall: { work: uninstall, giveUp: forceUninstall },
}

/** Where modules run. Tests bring their own. */
export type PickRuntime = () => Promise<ModuleRuntime>

/**
 * Does an announced operation, as far as nobody else does it or has done it. Throws what keeps the store from saying so; the
 * message then comes again.
 */
export const perform = (reference: OperationReference, pick: PickRuntime = moduleRuntime): Promise<void> =>
  asOnlyOne(reference, async (journal, kind) => {
    const { attempts } = journal.operation
    const runtime = await pick()
    if (attempts > attemptLimit) return kind.giveUp(journal, runtime, exhausted)
    try {
      await kind.work(journal, runtime)
    } catch (error) {
      if (error instanceof OperationLost) throw error
      const reason = judge(error)
      const { id: jobId, type } = journal.operation
      log('error', 'A try of an operation failed', {
        jobId,
        type,
        attempts,
        code: reason.code,
        reason: reason.message,
        cause: causeOf(error),
      })
      if (reason.isFinal || attempts === attemptLimit) return kind.giveUp(journal, runtime, reason)
      const pauseMs = firstPauseMs * 2 ** (attempts - 1)
      await journal.leave(pauseMs, reason.message)
      await announceOperation(reference, Math.ceil(pauseMs / 1000))
    }
  })

/** What a module does wrong is told by its message; anything else by where it happened. */
const causeOf = (error: unknown): unknown => (error instanceof OperationFailure ? undefined : error)

const exhausted: Judgement = { message: `It was begun ${attemptLimit} times, and never ended.`, isFinal: true }
const buried: Judgement = { message: 'Its message could not be handled.', isFinal: true }

/** Gives up an operation whose message nobody could handle; one that somebody is at, or that is over, stays as it is. */
export const bury = (reference: OperationReference, pick: PickRuntime = moduleRuntime): Promise<void> =>
  asOnlyOne(reference, async (journal, kind) => kind.giveUp(journal, await pick(), buried))

async function asOnlyOne(
  reference: OperationReference,
  work: (journal: Journal, kind: Kind) => Promise<void>,
): Promise<void> {
  const begun = await beginOperation(reference, newId('lease'))
  const kind = begun && kinds[begun.type]
  if (begun === undefined || kind === undefined) return
  await failpoint('module.begun')
  const journal = openJournal(begun)
  try {
    await whileKept(journal, () => work(journal, kind))
  } catch (error) {
    if (!(error instanceof OperationLost)) throw error
    log('warn', 'Somebody else does the operation by now', { ...reference })
  }
}
