import {
  defaultDeliverWithinSeconds,
  type Job,
  jobStatuses,
  type JobSummary,
  jobTypes,
  statusReasons,
} from '@platform/contract/job'
import * as z from 'zod'
import { iso, now, optionalTimestamp } from '../clock.ts'
import { type Item } from '../db/table.ts'
import { isOperation } from '../operations/record.ts'
import { transitionOf } from '../outbox/record.ts'

/** The stored form of a job. Payload and result are separate items, so that status changes do not rewrite them. */
export const JobRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  clusterId: z.string(),
  /** The batch of the job. */
  batchId: z.string().optional(),
  type: z.enum(jobTypes),
  status: z.enum(jobStatuses),
  statusReason: z.enum(statusReasons).optional(),
  timeoutSeconds: z.number(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** Relays may claim it until then. */
  expiresAtMs: z.number(),
  /** The delivery timeout, if the batch releases the job later. */
  deliverWithinSeconds: z.number().optional(),
  /** The batch holds the job back: it waits for its release. */
  isThrottled: z.literal(true).optional(),
  /** Set when the job was put into its cluster's inbox. */
  dispatchedAtMs: z.number().optional(),
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
  cancelRequestedAtMs: z.number().optional(),
  relayId: z.string().optional(),
  leaseId: z.string().optional(),
  leaseRenewedAtMs: z.number().default(0),
  /** The relay's idempotency key of the claim. */
  claimKey: z.string().optional(),
  nextSeq: z.number().default(0),
  outputBytes: z.number().default(0),
  /** Identifies a repeated completion. */
  completion: z.string().optional(),
  lateResult: z.object({ outcome: z.string(), exitCode: z.number().nullable(), reportedAtMs: z.number() }).optional(),
})
export type JobRecord = z.infer<typeof JobRecord>

export const parseJob = (item: Item): JobRecord => JobRecord.parse(item)

/** The job of a stored item; undefined for an operation, which has no relay. */
export const parseRelayed = (item: Item | undefined): JobRecord | undefined =>
  item === undefined || isOperation(item) ? undefined : parseJob(item)

const Payload = z.record(z.string(), z.unknown())

export const parsePayload = (text: unknown): Record<string, unknown> => Payload.parse(JSON.parse(String(text)))

/** Whether a job has ended and its status is final. */
export const isTerminal = ({ status }: JobRecord): boolean => status !== 'Queued' && status !== 'Running'

/** The end of a job. */
export interface JobEnd {
  status: 'Completed' | 'Failed' | 'Cancelled'
  statusReason?: JobRecord['statusReason']
  exitCode?: number | null
}

const endNames = { Completed: 'job.completed', Failed: 'job.failed', Cancelled: 'job.cancelled' } as const

/** The data of every event of a job. */
export const jobEventData = ({
  id,
  clusterId,
  batchId,
  type,
  createdBy,
}: Pick<JobRecord, 'id' | 'clusterId' | 'batchId' | 'type' | 'createdBy'>) => ({
  jobId: id,
  clusterId,
  batchId,
  type,
  createdBy,
})

/** Effects of a new job. */
export const effectsOfQueued = (job: Parameters<typeof jobEventData>[0]) => ({
  events: [{ name: 'job.queued' as const, subject: job.id, data: jobEventData(job) }],
  transitions: [transitionOf(job, undefined, 'Queued')],
})

/** Effects of a job's end: the event and the transition for totals. */
export function effectsOfFinish(job: JobRecord, { status, statusReason, exitCode }: JobEnd) {
  const previousStatus = job.status === 'Running' ? ('Running' as const) : ('Queued' as const)
  const data = { ...jobEventData(job), previousStatus, statusReason, exitCode }
  return {
    events: [{ name: endNames[status], subject: job.id, data }],
    transitions: [transitionOf(job, job.status, status)],
  }
}

/** Effects of a job that ended at creation. */
export const effectsOfFailedCreation = (job: JobRecord, end: JobEnd) => ({
  ...effectsOfFinish(job, end),
  transitions: [transitionOf(job, undefined, end.status)],
})

/** The API representation in lists: without payload and result. */
export const jobSummary = (row: JobRecord): JobSummary => ({
  id: row.id,
  clusterId: row.clusterId,
  ...(row.batchId === undefined ? {} : { batchId: row.batchId }),
  type: row.type,
  status: row.status,
  ...(row.statusReason === undefined ? {} : { statusReason: row.statusReason }),
  createdAt: iso(row.createdAtMs),
  ...optionalTimestamp('startedAt', row.startedAtMs),
  ...optionalTimestamp('completedAt', row.completedAtMs),
  ...optionalTimestamp('cancelRequestedAt', row.cancelRequestedAtMs),
})

/** The API representation without the result. */
export const jobView = (row: JobRecord, payload: Record<string, unknown>): Job => ({
  ...jobSummary(row),
  payload,
  expiresAt: iso(expiryOf(row)),
  ...(row.lateResult === undefined ? {} : { lateResult: lateView(row.lateResult) }),
})

/** The delivery timeout of a throttled job starts at its release. */
function expiryOf({
  status,
  isThrottled,
  expiresAtMs,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
}: JobRecord): number {
  return isThrottled && status === 'Queued' ? now() + deliverWithinSeconds * 1000 : expiresAtMs
}

const lateView = ({ outcome, exitCode, reportedAtMs }: NonNullable<JobRecord['lateResult']>) => ({
  outcome,
  exitCode,
  reportedAt: iso(reportedAtMs),
})
