import * as keys from '../db/keys.ts'
import { orThrow, type WriteItem, upsert } from '../db/table.ts'
import { findOperation } from '../operations/operation.ts'
import { isOperationTerminal } from '../operations/record.ts'
import { type UpdateState } from './record.ts'

/** One update at a time: the state of updates names the job that changes the platform. */

/**
 * The update that is under way; undefined where there is none. A job that has ended, or is no more, locks nothing. One call
 * where the state names a job, else none.
 */
export async function runningUpdate(organisationId: string, { jobId }: UpdateState): Promise<string | undefined> {
  const operation = jobId === undefined ? undefined : await findOperation({ organisationId, jobId })
  return operation === undefined || isOperationTerminal(operation) ? undefined : operation.id
}

/** The step by which an update takes the platform; refused with `update_in_progress` where another one was faster. */
export const lockUpdateWrite = ({ revision }: UpdateState, jobId: string): WriteItem =>
  orThrow(
    upsert(
      keys.updateState(),
      { set: { jobId }, add: { revision: 1 } },
      { revision: revision === 0 ? { absent: true } : { is: revision } },
    ),
    'update_in_progress',
  )
