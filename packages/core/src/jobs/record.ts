import {
  defaultDeliverWithinSeconds,
  type Job,
  jobStatuses,
  type JobSummary,
  jobTypes,
  statusReasons,
} from '@platform/contract/job'
import { jobTitle, scriptTitle } from '@platform/contract/job-title'
import * as z from 'zod'
import { iso, now, optionalTimestamp } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, type WriteItem } from '../db/table.ts'
import { compress, decompress } from '../lib/compression.ts'
import { isOperation } from '../operations/record.ts'
import { transitionOf } from '../outbox/record.ts'
import { submitterFields, submitterView } from '../submitter.ts'

/** A large payload or result is a separate item, so that a status change does not rewrite it. */
export const JobRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  clusterId: z.string(),
  batchId: z.string().optional(),
  type: z.enum(jobTypes),
  status: z.enum(jobStatuses),
  statusReason: z.enum(statusReasons).optional(),
  timeoutSeconds: z.number(),
  createdAtMs: z.number(),
  name: z.string().optional(),
  /** Title of the script, unless there is a name or the record contains a short payload. */
  title: z.string().optional(),
  reason: z.string().optional(),
  ...submitterFields,
  expiresAtMs: z.number(),
  /** Set for jobs of a batch, and if the delivery timeout does not start at the creation. */
  deliverWithinSeconds: z.number().optional(),
  /** Removed when the batch releases the job into the inbox of its cluster. */
  isThrottled: z.literal(true).optional(),
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
  cancelRequestedAtMs: z.number().optional(),
  /** The user who cancelled this job alone, not its batch. */
  cancelledBy: z.string().optional(),
  relayId: z.string().optional(),
  leaseId: z.string().optional(),
  leaseRenewedAtMs: z.number().default(0),
  /**
   * Set until the start is recorded in the outbox; never removed if the end is recorded later, together with the start.
   */
  isStartPending: z.literal(true).optional(),
  /** Set if the request that reported the end did not record it; never removed. */
  isEndDeferred: z.literal(true).optional(),
  claimKey: z.string().optional(),
  nextSeq: z.number().default(0),
  /** Bytes that the scripts wrote, including those that the relay dropped. */
  outputBytes: z.number().default(0),
  /** The time at which the output received so far is within the rate limit. */
  outputPaidAtMs: z.number().default(0),
  /** Hash of the relay's report, to recognise a repeated one. */
  completion: z.string().optional(),
  /** Set if the cluster's record lists the waiting job, which then has no item in the inbox. */
  isListed: z.literal(true).optional(),
  /** Compressed; absent if it is a separate item. */
  payload: z.instanceof(Uint8Array).optional(),
  /** JSON; absent if it is a separate item. */
  result: z.string().optional(),
  /** Absent without a result, and if a node was stopped and no node failed. */
  exitCode: z.number().optional(),
  /** In the record, like the exit code, so that the jobs of a batch can be grouped by their results. */
  outputSha256: z.instanceof(Uint8Array).optional(),
  duesk: z.string().optional(),
  lateResult: z.object({ outcome: z.string(), exitCode: z.number().nullable(), reportedAtMs: z.number() }).optional(),
})
export type JobRecord = z.infer<typeof JobRecord>

/** A stored job has its organisation in the key only. */
export const parseJob = (item: Item): JobRecord =>
  JobRecord.parse({ organisationId: keys.organisationOf(typeof item['pk'] === 'string' ? item['pk'] : ''), ...item })

/** Returns undefined for an operation, because operations have no relay. */
export const parseRelayed = (item: Item | undefined): JobRecord | undefined =>
  item === undefined || isOperation(item) ? undefined : parseJob(item)

const Payload = z.record(z.string(), z.unknown())

export const parsePayload = (text: string): Record<string, unknown> => Payload.parse(JSON.parse(text))

/** Keeps the record below 1 KB, because each write of the record is billed per KB. */
const maxPayloadBytesInRecord = 256

export const createWrites = (...args: Parameters<typeof newItems>): WriteItem[] =>
  newItems(...args).map(({ key, item }) => create(key, item))

/**
 * Returns the items of a new job. A large payload comes first, so that a stored job always has its payload. Compresses
 * the payload, because JSON may need six bytes for one byte of a script.
 */
export function newItems(
  record: Pick<JobRecord, 'organisationId' | 'id' | 'name'> & Item,
  text: string,
): { key: keys.Key; item: Item }[] {
  const { organisationId, ...stored } = record
  const { id, name } = record
  const payload = compress(text)
  const key = keys.job(organisationId, id)
  const title = name === undefined ? (titleOfPayload(text) ?? jobTitle({})) : undefined
  const isInRecord = payload.length <= maxPayloadBytesInRecord
  // Lists do not parse long payloads that compress well.
  const hasTitle = title !== undefined && (!isInRecord || text.length > maxParsedByLists)
  return [
    ...(isInRecord ? [] : [{ key: keys.payload(organisationId, id), item: { payload } }]),
    { key, item: { ...stored, ...(hasTitle && { title }), ...(isInRecord && { payload }) } },
  ]
}

const maxParsedByLists = 4096

let lastTitle: { text: string; title: string | undefined } | undefined

/** Jobs of a batch usually have the same payload, so the last title is kept. */
export function titleOfPayload(text: string): string | undefined {
  if (lastTitle?.text !== text) {
    const { script } = parsePayload(text)
    lastTitle = { text, title: typeof script === 'string' ? scriptTitle(script) : undefined }
  }
  return lastTitle.title
}

export function titleOf(job: Pick<JobRecord, 'name' | 'title' | 'payload' | 'type'>): string {
  const { type, name = job.title, payload } = job
  return jobTitle({ type, name: name ?? (payload && titleOfPayload(decompress(payload))) })
}

/** Returns the JSON text of the payload, or undefined if its separate item is missing. */
export function payloadText({ payload }: Pick<JobRecord, 'payload'>, item: Item | undefined): string | undefined {
  const storedPayload = payload ?? item?.['payload']
  return storedPayload === undefined ? undefined : decompress(storedPayload)
}

export const isTerminal = ({ status }: JobRecord): boolean => status !== 'Queued' && status !== 'Running'

export interface JobEnd {
  status: 'Completed' | 'Failed' | 'Cancelled'
  statusReason?: JobRecord['statusReason']
  exitCode?: number | null
}

const endEventNames = { Completed: 'job.completed', Failed: 'job.failed', Cancelled: 'job.cancelled' } as const

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

export const effectsOfQueued = (job: Parameters<typeof jobEventData>[0]) => ({
  events: [{ name: 'job.queued' as const, subject: job.id, data: jobEventData(job) }],
  transitions: [transitionOf(job, undefined, 'Queued')],
})

export function effectsOfFinish(job: JobRecord, { status, statusReason, exitCode }: JobEnd) {
  const previousStatus = job.status === 'Running' ? ('Running' as const) : ('Queued' as const)
  // Receivers of webhooks are not trusted with parts of scripts.
  const name = status === 'Failed' && job.name !== undefined ? { name: job.name } : {}
  const data = { ...jobEventData(job), ...name, previousStatus, statusReason, exitCode }
  return {
    events: [{ name: endEventNames[status], subject: job.id, data }],
    transitions: [transitionOf(job, job.status, status)],
  }
}

export const effectsOfFailedCreation = (job: JobRecord, end: JobEnd) => ({
  ...effectsOfFinish(job, end),
  transitions: [transitionOf(job, undefined, end.status)],
})

export const jobSummary = (record: JobRecord): JobSummary => ({
  id: record.id,
  clusterId: record.clusterId,
  ...(record.batchId === undefined ? {} : { batchId: record.batchId }),
  type: record.type,
  status: record.status,
  ...(record.statusReason === undefined ? {} : { statusReason: record.statusReason }),
  createdAt: iso(record.createdAtMs),
  title: titleOf(record),
  ...(record.name === undefined ? {} : { name: record.name }),
  createdBy: submitterView(record),
  ...optionalTimestamp('startedAt', record.startedAtMs),
  ...optionalTimestamp('completedAt', record.completedAtMs),
  ...optionalTimestamp('cancelRequestedAt', record.cancelRequestedAtMs),
})

export const jobView = (record: JobRecord, payload: Record<string, unknown>): Job => ({
  ...jobSummary(record),
  ...(record.reason === undefined ? {} : { reason: record.reason }),
  payload,
  expiresAt: iso(expiryOf(record)),
  ...(record.lateResult === undefined ? {} : { lateResult: lateResultView(record.lateResult) }),
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

const lateResultView = ({ outcome, exitCode, reportedAtMs }: NonNullable<JobRecord['lateResult']>) => ({
  outcome,
  exitCode,
  reportedAt: iso(reportedAtMs),
})
