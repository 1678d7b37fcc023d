import * as z from 'zod'
import { organisations } from '../accounts/organisation.ts'
import { parseSettings } from '../accounts/organisation-settings.ts'
import { system } from '../caller.ts'
import { elapsedMs, isAhead, now } from '../clock.ts'
import { counterWrites, subtractEnded } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, type Item, query, remove, update } from '../db/table.ts'
import { lowestIdAt } from '../id.ts'
import { log } from '../log.ts'
import { isOperation } from '../operations/record.ts'
import { commit } from '../outbox/commit.ts'
import { transitionOf } from '../outbox/record.ts'
import { recordStartsAndEnds, unrecordedEnds } from './recording.ts'
import { removeDetails } from './purge.ts'
import { isTerminal, type JobRecord, parseJob } from './record.ts'

/**
 * Removes jobs whose retention has ended. The totals count every job, so the items must be removed by the code and not
 * by the store's `ttl`. A round visits every organisation. The next round starts an hour after the previous one, or at
 * once if that left a backlog. Each sweep continues the round for a limited time.
 */

const roundMs = 3_600_000
/** Limits the time of one organisation, so that a backlog does not delay the others. */
const maxOrganisationMs = 5000
const organisationsPerQuery = 25
const jobsPerQuery = 100
/** Each job needs a write of its own and one of its cluster, and a transaction has at most 100. */
const jobsPerTransaction = 45
const dayMs = 86_400_000
/** After a longer pause, the clock may have been set forward by mistake, and removed jobs cannot be restored. */
const maxPauseMs = dayMs

/** `after` is the last organisation that the current round has visited. */
const State = z.object({
  lastAtMs: z.number().optional(),
  nextAtMs: z.number().default(0),
  after: z.string().optional(),
  hasBacklog: z.boolean().default(false),
})

/** The time before which this process need not read the state. */
let idleUntilMs = 0

export async function removeExpiredJobs(limitMs: number): Promise<void> {
  if (isAhead(idleUntilMs, roundMs)) return
  const state = State.parse((await get(keys.jobRetention())) ?? {})
  if (isAhead(state.nextAtMs, roundMs)) {
    idleUntilMs = state.nextAtMs
    return
  }
  const lastAtMs = now()
  if (lastAtMs - (state.lastAtMs ?? lastAtMs) > maxPauseMs) {
    log('warn', 'The last removal of expired jobs was long ago; the next one starts in an hour. Check the clock.')
    await update(keys.jobRetention(), { set: { lastAtMs, nextAtMs: lastAtMs + roundMs } })
    return
  }
  const untilMs = elapsedMs() + limitMs
  let { after, hasBacklog } = state
  let isComplete = false
  while (!isComplete && elapsedMs() < untilMs) {
    const from = after === undefined ? {} : { from: `${after}~` }
    const { items } = await query({ pk: organisations.pk, limit: organisationsPerQuery, ...from })
    isComplete = items.length < organisationsPerQuery
    for (const item of items) {
      const isDone = await tryRemoveExpired(item, lastAtMs, Math.min(untilMs, elapsedMs() + maxOrganisationMs))
      hasBacklog ||= !isDone
      after = String(item['sk'])
    }
    const nextRun = { lastAtMs, nextAtMs: hasBacklog ? now() : now() + roundMs, hasBacklog: false }
    await update(
      keys.jobRetention(),
      isComplete ? { set: nextRun, remove: ['after'] } : { set: { lastAtMs, hasBacklog, ...(after && { after }) } },
    )
  }
}

/** Returns false after a failure, so that one organisation does not affect the others. */
async function tryRemoveExpired(organisation: Item, atMs: number, untilMs: number): Promise<boolean> {
  try {
    return await removeExpiredOf(organisation, atMs, untilMs)
  } catch (error) {
    log('error', 'Cannot remove expired jobs', { organisationId: organisation['sk'], error: String(error) })
    return false
  }
}

/** Returns false if the time ran out. Keeps jobs that were created before the retention period but ended within it. */
async function removeExpiredOf(organisation: Item, atMs: number, untilMs: number): Promise<boolean> {
  const organisationId = String(organisation['sk'])
  const expiredMs = atMs - parseSettings(organisation).jobRetentionDays * dayMs
  const range = { index: 'gsi2', pk: keys.organisationJobs(organisationId), limit: jobsPerQuery } as const
  let after: Item | undefined
  do {
    const page = await query({ ...range, to: lowestIdAt('job', expiredMs), ...(after && { after }) })
    const items = page.items.length === 0 ? [] : await getConsistent(page.items.map(keyOf))
    const jobs = items.filter((item) => item !== undefined && !isOperation(item)).map((item) => parseJob(item ?? {}))
    const expiredJobs = jobs.filter((job) => isTerminal(job) && (job.completedAtMs ?? 0) <= expiredMs)
    for (let from = 0; from < expiredJobs.length; from += jobsPerTransaction) {
      await removeJobs(organisationId, expiredJobs.slice(from, from + jobsPerTransaction))
    }
    after = page.next
  } while (after !== undefined && elapsedMs() < untilMs)
  return after === undefined
}

const keyOf = ({ pk, sk }: Item): keys.Key => ({ pk: String(pk), sk: String(sk) })

const idOf = ({ id }: JobRecord): string => id

/**
 * Removes the records last, because the index lists a job until its record is removed. If another sweep has removed one
 * of them, the next round removes the rest. The jobs of a removed cluster are left to its purge.
 */
async function removeJobs(organisationId: string, jobs: readonly JobRecord[]): Promise<void> {
  await removeDetails(organisationId, jobs.map(idOf))
  const unrecordedJobs = await unrecordedEnds(organisationId, jobs)
  if (unrecordedJobs.length > 0) await recordStartsAndEnds(organisationId, unrecordedJobs.map(idOf))
  let rest = jobs
  while (rest.length > 0) {
    const counters = counterWrites(
      organisationId,
      rest.map(({ clusterId, status }) => ({ clusterId, add: subtractEnded(status) })),
    )
    const failure = await commit(system(organisationId), {
      writes: [
        ...counters.map(({ write }) => write),
        ...rest.map(({ id, status }) => remove(keys.job(organisationId, id), { status: { is: status } })),
      ],
      transitions: rest.map((job) => ({ ...transitionOf(job, job.status, undefined), isExpired: true as const })),
    })
    const missingCluster = failure && counters[failure.index]
    if (missingCluster === undefined) return
    rest = rest.filter(({ clusterId }) => clusterId !== missingCluster.clusterId)
  }
}
