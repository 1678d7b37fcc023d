import type { Actor } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { addEnded, counterWrites } from '../clusters/counters.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { type Item, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { inboxExitChange, leaveInbox } from './inbox.ts'
import { type JobEnd, type JobRecord, effectsOfFinish } from './record.ts'
import { wakeRelay } from '../aws/wake-relay.ts'

/**
 * The sweep ends a running job this long after the request to cancel it, if the relay has not confirmed the
 * cancellation.
 */
export const cancelConfirmMs = 60_000
/** A transaction has at most 100 writes; a job needs up to three. */
export const maxJobsPerTransaction = 32

interface CancelContext {
  atMs?: number
  response?: unknown
}

const responseOf = ({ response }: CancelContext) => (response === undefined ? {} : { response })

/** Ends all of the jobs, which must be Queued, or none. Returns false if a job was changed concurrently. */
export async function finishQueued(
  actor: Actor,
  jobs: readonly JobRecord[],
  end: JobEnd,
  context: CancelContext = {},
): Promise<boolean> {
  const counters = counterWrites(
    actor.organisationId,
    jobs.map((job) => counterChange(job, end)),
  )
  const effects = jobs.map((job) => effectsOfFinish(job, end))
  const failure = await commit(actor, {
    writes: [...jobs.flatMap((job) => finishWrites(actor, job, end, context)), ...counters.map(({ write }) => write)],
    ...responseOf(context),
    ...(actor.kind === 'user' && { audit: { action: 'job.cancel', resource: jobs[0]?.id ?? '' } }),
    events: effects.flatMap(({ events }) => events),
    transitions: effects.flatMap(({ transitions }) => transitions),
  })
  return failure === undefined
}

function counterChange(job: JobRecord, { status }: JobEnd) {
  const { add, drop } = inboxExitChange(job.isThrottled ? [] : [job])
  return { clusterId: job.clusterId, drop, add: { activeJobs: -1, ...add, ...addEnded(status) } }
}

function finishWrites(actor: Actor, job: JobRecord, end: JobEnd, { atMs = now() }: CancelContext): WriteItem[] {
  const change = {
    set: { ...end, ...cancelledBy(actor), ...keys.jobStatusIndexKey(job, end.status), completedAtMs: atMs },
    remove: ['duepk', 'duesk'],
  }
  const condition = { status: { is: 'Queued' }, isThrottled: unchangedCondition(job.isThrottled) }
  return [patch(keys.job(job.organisationId, job.id), change, condition), ...(job.isThrottled ? [] : leaveInbox(job))]
}

/** Returns false if the job was changed concurrently. */
export async function requestCancel(actor: Actor, job: JobRecord, context: CancelContext = {}): Promise<boolean> {
  if (job.cancelRequestedAtMs === undefined) {
    const failure = await commit(actor, {
      writes: [cancelWrite(job, { ...cancelledBy(actor), cancelRequestedAtMs: context.atMs ?? now() })],
      ...responseOf(context),
      audit: { action: 'job.cancel', resource: job.id },
    })
    if (failure) return false
  }
  await wakeRelay(job.clusterId)
  return true
}

/** Requests the cancellation of all jobs or of none. Returns false if a job was changed concurrently. */
export async function requestCancelAll(jobs: readonly JobRecord[]): Promise<boolean> {
  if (await transact(jobs.map((job) => cancelWrite(job)))) return false
  await Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(wakeRelay))
  return true
}

const cancelledBy = (actor: Actor) => (actor.kind === 'user' ? { cancelledBy: actor.userId } : {})

const cancelWrite = (job: JobRecord, fields: Item = { cancelRequestedAtMs: now() }): WriteItem => {
  const set = { ...fields, ...keys.dueIndexKeys(job.id, now() + cancelConfirmMs) }
  const runningCondition = { status: { is: 'Running' }, cancelRequestedAtMs: { absent: true } } as const
  return patch(keys.job(job.organisationId, job.id), { set }, runningCondition)
}
