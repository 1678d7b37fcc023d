import type { ClaimRequest, Completion } from '@platform/contract/relay'
import { now } from './clock.ts'
import type { CompletionRecord } from './journal-entry.ts'
import { messageOf, info, warn } from './log.ts'
import type { JobDeps } from './job-deps.ts'
import type { UnverifiedClaim } from './statement.ts'
import type { OutputCall } from './output.ts'
import type { Lease, Upload } from './upload.ts'

/**
 * Claims a job. A repeated call with the same key returns the same claim. Returns undefined if the server does not
 * lease the job to this relay.
 */
export async function claimJob(deps: JobDeps, jobId: string, claimKey: string): Promise<UnverifiedClaim | undefined> {
  const { status, body } = await deps.client.deliver({
    path: `/jobs/${jobId}/claim`,
    body: { statementKey: deps.statementKeys.newestKid } satisfies ClaimRequest,
    headers: { 'idempotency-key': claimKey },
    signal: deps.signal,
    isSuccess: ({ status, body }) => status === 200 && typeof body.leaseId === 'string',
  })
  const { leaseId, statement, payload, statementKeys } = body
  if (statementKeys !== undefined) deps.statementKeys.learn(statementKeys)
  if (status === 200 && typeof leaseId === 'string') return { leaseId, statement, payload }
  if (status !== 404 && status !== 409)
    warn(`Claiming job ${jobId} failed with status ${status}; the relay does not run it.`)
  return undefined
}

/**
 * Sends the remaining output and the result of a job. Returns when the server has accepted or rejected the result.
 * Stores both on disk first, if possible, so that a restarted relay can send them.
 */
export async function reportCompletion(
  deps: JobDeps,
  lease: Lease,
  completion: CompletionRecord,
  upload?: Upload,
): Promise<void> {
  const { jobId, leaseId } = lease
  const { journal, spool } = deps
  const undeliveredOutput = upload?.close() ?? []
  warnOnError(() => {
    spool.store(jobId, undeliveredOutput)
    journal.append({ state: 'finished', jobId, leaseId, ending: completion })
  })
  await complete(deps, lease, completion, await upload?.untilSent())
  warnOnError(() => {
    journal.append({ state: 'done', jobId, atMs: now() })
    spool.remove(jobId)
  })
}

/**
 * Reports the result of a job with the last output, if any. Retries until the server accepts or rejects the report. If
 * the output is out of order, reports the result without it.
 */
export async function complete(
  deps: JobDeps,
  { jobId, leaseId }: Lease,
  completion: CompletionRecord,
  lastOutput?: OutputCall,
): Promise<void> {
  const send = (output: Completion['output']) => deps.completions.report(jobId, { leaseId, ...completion, output })
  let errorCode = await send(lastOutput?.chunks && { seq: lastOutput.seq, chunks: lastOutput.chunks })
  if (lastOutput && errorCode === 'output_out_of_order') {
    warn(`The server rejected output of job ${jobId} (${errorCode}); it is not sent.`)
    errorCode = await send(undefined)
  }
  const result =
    completion.exitCode === null ? completion.outcome : `${completion.outcome} with code ${completion.exitCode}`
  if (errorCode === undefined) info(`Job ${jobId}: ${result}.`)
  else warn(`Job ${jobId}: ${result}; the server rejected the report (${errorCode}).`)
}

/** Calls `write` and only warns if it throws, because a full disk must not prevent the report of a result. */
export function warnOnError(write: () => void): void {
  try {
    write()
  } catch (error) {
    warn(`The journal cannot be written: ${messageOf(error)}. Free space on the disk.`)
  }
}
