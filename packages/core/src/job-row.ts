import { type Job, jobStatuses, jobTypes, statusReasons } from '@platform/contract/job'
import * as z from 'zod'
import { iso } from './clock.ts'
import { type Item } from './db/table.ts'

/** How a job is stored. Payload and result stand in items of their own: a change of status does not rewrite them. */
export const JobRow = z.object({
  id: z.string(),
  organisationId: z.string(),
  clusterId: z.string(),
  type: z.enum(jobTypes),
  status: z.enum(jobStatuses),
  statusReason: z.enum(statusReasons).optional(),
  timeoutSeconds: z.number(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** Until then a relay may claim it. */
  expiresAtMs: z.number(),
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
export type JobRow = z.infer<typeof JobRow>

export const parseJob = (item: Item): JobRow => JobRow.parse(item)

const Payload = z.record(z.string(), z.unknown())

/** The payload of its stored text. */
export const parsePayload = (text: unknown): Record<string, unknown> => Payload.parse(JSON.parse(String(text)))

/** Whether a job has ended: its status does not change any more. */
export const isOver = ({ status }: JobRow): boolean => status !== 'Queued' && status !== 'Running'

const when = (name: string, ms: number | undefined) => (ms === undefined ? {} : { [name]: iso(ms) })

/** The wire form, but for the result. */
export const jobView = (row: JobRow, payload: Record<string, unknown>): Job => ({
  id: row.id,
  clusterId: row.clusterId,
  type: row.type,
  payload,
  status: row.status,
  ...(row.statusReason === undefined ? {} : { statusReason: row.statusReason }),
  createdAt: iso(row.createdAtMs),
  expiresAt: iso(row.expiresAtMs),
  ...when('startedAt', row.startedAtMs),
  ...when('completedAt', row.completedAtMs),
  ...when('cancelRequestedAt', row.cancelRequestedAtMs),
  ...(row.lateResult === undefined ? {} : { lateResult: lateView(row.lateResult) }),
})

const lateView = ({ outcome, exitCode, reportedAtMs }: NonNullable<JobRow['lateResult']>) => ({
  outcome,
  exitCode,
  reportedAt: iso(reportedAtMs),
})
