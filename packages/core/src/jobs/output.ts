import type { JobOutput } from '@platform/contract/job-output'
import { type Completion, maxOutputCallBytes, type OutputReport, type OutputResponse } from '@platform/contract/relay'
import { findJob, findStoredJob } from './batches/find-job.ts'
import type { Caller, RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { removeAll, transact } from '../db/transact.ts'
import { create, patch } from '../db/table.ts'
import { platformError, storeContentionError } from '../error.ts'
import { isTerminal, type JobRecord } from './record.ts'
import { checkLease, findOwnJob } from './claim.ts'
import { isOperationTerminal, type OperationRecord } from '../operations/record.ts'
import { type Chunk, chunksBefore, chunksOf, chunkViews, readChunks, toItem } from './output-item.ts'
import { headBytes, joinRanges, separateRanges, tailBytes } from './output-range.ts'

/** Relays append output while a job runs; callers read it from a byte offset. */

const maxAttempts = 4
/** Output between head and tail is deleted each time this many bytes have been added. */
const truncateEveryBytes = 131_072
/**
 * The output of this many calls fits into the response of a function, even if it consists of control characters, which
 * take seven bytes each.
 */
const readCallLimit = 10
/** The limit for reads of bytes, whose response is Base64 and thus only a third larger than the output. */
const readBytesCallLimit = 40
const bytesPerSecond = 1_048_576
const maxBurstMs = 4000

/** Idempotent: a call with a `seq` that was already stored has no effect. */
export async function append(caller: RelayCaller, jobId: string, report: OutputReport): Promise<OutputResponse> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const job = await findOwnJob(caller, jobId)
    checkLease(job, caller, report.leaseId)
    if (isTerminal(job)) throw platformError('job_already_finished')
    const cancel = job.cancelRequestedAtMs !== undefined
    if (report.seq < job.nextSeq) return { nextSeq: job.nextSeq, cancel }
    if (report.seq > job.nextSeq) throw platformError('output_out_of_order')
    const chunks = chunksOf(report, job.outputBytes)
    const totalBytes = endOf(chunks)
    if (await transact(appendWrites(job, report, chunks))) continue
    await deleteMiddle(job, totalBytes)
    return { nextSeq: report.seq + 1, cancel }
  }
  throw storeContentionError()
}

/** Returns the output that a completion carries, or no chunks if it is already stored. */
export function lastChunks(job: JobRecord, output: Completion['output']): Chunk[] {
  if (output === undefined || output.seq < job.nextSeq) return []
  if (output.seq > job.nextSeq) throw platformError('output_out_of_order')
  return chunksOf(output, job.outputBytes)
}

export const outputWrites = ({ organisationId, id, outputBytes }: JobRecord, chunks: readonly Chunk[]) =>
  chunks.length === 0 ? [] : [create(keys.output(organisationId, id, outputBytes), toItem(chunks))]

export const outputFieldsAfter = ({ nextSeq }: JobRecord, chunks: readonly Chunk[]) =>
  chunks.length === 0 ? {} : { nextSeq: nextSeq + 1, outputBytes: endOf(chunks) }

export const endOf = (chunks: readonly Chunk[]): number => {
  const lastChunk = chunks.at(-1)
  return lastChunk === undefined ? 0 : lastChunk.offset + lastChunk.bytes.length
}

function appendWrites(job: JobRecord, { seq, leaseId }: OutputReport, chunks: Chunk[]) {
  const { organisationId, id } = job
  const isNext = seq === 0 ? ({ absent: true } as const) : { is: seq }
  const set = {
    ...outputFieldsAfter(job, chunks),
    leaseRenewedAtMs: now(),
    outputPaidAtMs: nextPaidAtMs(job, chunks),
  }
  return [
    patch(
      keys.job(organisationId, id),
      { set },
      { status: { is: 'Running' }, leaseId: { is: leaseId }, nextSeq: isNext },
    ),
    ...outputWrites(job, chunks),
  ]
}

/** Returns the new `outputPaidAtMs`. Throws `rate_limited` if the job exceeds its rate and the allowed burst. */
function nextPaidAtMs({ outputPaidAtMs }: JobRecord, chunks: readonly Chunk[]): number {
  // A time far in the future was stored before the clock was set back.
  const isPlausible = outputPaidAtMs - now() <= maxBurstMs + 1000
  const paidAtMs = isPlausible ? Math.max(now(), outputPaidAtMs) : now()
  const aheadMs = paidAtMs - now()
  if (aheadMs > maxBurstMs) throw platformError('rate_limited', { retryAfterSeconds: Math.ceil(aheadMs / 1000) })
  const bytes = chunks.reduce((total, chunk) => total + chunk.bytes.length, 0)
  return paidAtMs + (Math.max(bytes, maxOutputCallBytes) / bytesPerSecond) * 1000
}

/** Deletes output between the first 256 KiB and the last 768 KiB. A later append repeats an interrupted deletion. */
export async function deleteMiddle({ organisationId, id, outputBytes }: JobRecord, total: number): Promise<void> {
  const isDue = Math.floor(total / truncateEveryBytes) > Math.floor(outputBytes / truncateEveryBytes)
  // The call that may overlap the start of the tail is not deleted.
  const deleteTo = total - tailBytes - maxOutputCallBytes
  if (!isDue || deleteTo <= headBytes) return
  const { pk, sk: from } = keys.output(organisationId, id, headBytes)
  const { sk: to } = keys.output(organisationId, id, deleteTo)
  await removeAll({ pk, from, to })
}

export async function readOutput(caller: Caller, jobId: string, offset: number): Promise<JobOutput> {
  const { ranges, nextOffset, status, finished } = await outputFrom(caller, jobId, offset, readCallLimit)
  return { items: chunkViews(ranges), nextOffset, status, finished }
}

/** Returns the output from an offset as bytes, with a line for each part that was dropped. */
export async function readBytes(caller: Caller, jobId: string, offset: number) {
  const { ranges, nextOffset, hasMore } = await outputFrom(caller, jobId, offset, readBytesCallLimit)
  return { bytes: joinRanges(ranges), nextOffset, hasMore }
}

/**
 * Reads the output from an offset. `maxCalls` limits the calls that begin at the offset or later. Never waits for
 * output, because a waiting request would occupy an execution environment of Lambda.
 */
async function outputFrom({ organisationId }: Caller, jobId: string, offset: number, maxCalls: number) {
  const lookup = await findJob(organisationId, jobId, () => findStoredJob(organisationId, jobId))
  if ('operation' in lookup) return outputOfOperation(lookup.operation, offset)
  const { job } = lookup
  const chunks = offset >= job.outputBytes ? [] : await readFrom(job, offset, maxCalls)
  const nextOffset = Math.max(offset, chunks.length > 0 ? endOf(chunks) : job.outputBytes)
  const hasMore = nextOffset < job.outputBytes
  const ranges = separateRanges(chunks, offset)
  return { ranges, nextOffset, hasMore, status: job.status, finished: isTerminal(job) && !hasMore }
}

const outputOfOperation = (operation: OperationRecord, offset: number) => ({
  ranges: [],
  nextOffset: offset,
  hasMore: false,
  status: operation.status,
  finished: isOperationTerminal(operation),
})

/** Cuts the first chunk if the offset is inside it. */
async function readFrom(job: JobRecord, offset: number, maxCalls: number): Promise<Chunk[]> {
  const chunks = await readChunks(job, offset, maxCalls)
  if (chunks[0]?.offset === offset) return chunks
  const earlierChunks = await chunksBefore(job, offset)
  return [...earlierChunks, ...chunks]
    .filter((chunk) => chunk.offset + chunk.bytes.length > offset)
    .map((chunk) => {
      const skippedBytes = Math.max(0, offset - chunk.offset)
      return { ...chunk, offset: chunk.offset + skippedBytes, bytes: chunk.bytes.subarray(skippedBytes) }
    })
}
