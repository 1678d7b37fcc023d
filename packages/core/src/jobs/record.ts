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

/** How a job is stored. Payload and result stand in items of their own: a change of status does not rewrite them. */
export const JobRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  clusterId: z.string(),
  /** The batch that it came with. */
  batchId: z.string().optional(),
  type: z.enum(jobTypes),
  status: z.enum(jobStatuses),
  statusReason: z.enum(statusReasons).optional(),
  timeoutSeconds: z.number(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** Until then a relay may claim it. */
  expiresAtMs: z.number(),
  /** How long it may wait for its relay, where its batch has to know that. */
  deliverWithinSeconds: z.number().optional(),
  /** Its batch holds it back: it waits for its turn, not for its relay. */
  isHeld: z.literal(true).optional(),
  /** Set when the job has entered its cluster's inbox. */
  dispatchedAtMs: z.number().optional(),
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
  cancelRequestedAtMs: z.number().optional(),
  relayId: z.string().optional(),
  leaseId: z.string().optional(),
  leaseRenewedAtMs: z.number().default(0),
  /** The relay's own key of its claim: the same claim may be repeated. */
  claimKey: z.string().optional(),
  nextSeq: z.number().default(0),
  outputBytes: z.number().default(0),
  /** Tells a repeated completion from another one. */
  completion: z.string().optional(),
  lateResult: z.object({ outcome: z.string(), exitCode: z.number().nullable(), reportedAtMs: z.number() }).optional(),
})
export type JobRecord = z.infer<typeof JobRecord>

export const parseJob = (item: Item): JobRecord => JobRecord.parse(item)

/** The job of a stored item, where relays have a part in it: none in what the platform does on itself. */
export const parseRelayed = (item: Item | undefined): JobRecord | undefined =>
  item === undefined || isOperation(item) ? undefined : parseJob(item)

const Payload = z.record(z.string(), z.unknown())

/** The payload of its stored text. */
export const parsePayload = (text: unknown): Record<string, unknown> => Payload.parse(JSON.parse(String(text)))

/** Whether a job has ended: its status does not change any more. */
export const isTerminal = ({ status }: JobRecord): boolean => status !== 'Queued' && status !== 'Running'

/** How a job ends. */
export interface JobEnd {
  status: 'Completed' | 'Failed' | 'Cancelled'
  statusReason?: JobRecord['statusReason']
  exitCode?: number | null
}

const endNames = { Completed: 'job.completed', Failed: 'job.failed', Cancelled: 'job.cancelled' } as const

/** What every event of a job tells. */
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

/** What a new job tells. */
export const effectsOfQueued = (job: Parameters<typeof jobEventData>[0]) => ({
  events: [{ name: 'job.queued' as const, subject: job.id, data: jobEventData(job) }],
  moves: [transitionOf(job, undefined, 'Queued')],
})

/** What the end of a job tells: the event, and where totals move it. */
export function effectsOfFinish(job: JobRecord, { status, statusReason, exitCode }: JobEnd) {
  const previousStatus = job.status === 'Running' ? ('Running' as const) : ('Queued' as const)
  const data = { ...jobEventData(job), previousStatus, statusReason, exitCode }
  return {
    events: [{ name: endNames[status], subject: job.id, data }],
    moves: [transitionOf(job, job.status, status)],
  }
}

/** What a job tells that has ended before it could stand in the table as Queued. */
export const effectsOfFailedCreation = (job: JobRecord, end: JobEnd) => ({
  ...effectsOfFinish(job, end),
  moves: [transitionOf(job, undefined, end.status)],
})

/** The wire form in lists: without payload and result. */
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

/** The wire form, but for the result. */
export const jobView = (row: JobRecord, payload: Record<string, unknown>): Job => ({
  ...jobSummary(row),
  payload,
  expiresAt: iso(expiryOf(row)),
  ...(row.lateResult === undefined ? {} : { lateResult: lateView(row.lateResult) }),
})

/** The time of a job that is held back begins when it is let go. */
function expiryOf({
  status,
  isHeld,
  expiresAtMs,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
}: JobRecord): number {
  return isHeld && status === 'Queued' ? now() + deliverWithinSeconds * 1000 : expiresAtMs
}

const lateView = ({ outcome, exitCode, reportedAtMs }: NonNullable<JobRecord['lateResult']>) => ({
  outcome,
  exitCode,
  reportedAt: iso(reportedAtMs),
})
