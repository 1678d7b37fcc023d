import { setTimeout as delay } from 'node:timers/promises'
import { type JobOutput, type OutputChunk } from '@platform/contract/job-output'
import { type OutputResponse, outputChunkBytes, type OutputReport } from '@platform/contract/relay'
import { findJob, findStoredJob } from './batches/find-job.ts'
import { type Caller, type RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { removeAll, transact } from '../db/transact.ts'
import { create, patch } from '../db/table.ts'
import { storeContention, platformError } from '../error.ts'
import { isTerminal, type JobRecord } from './record.ts'
import { checkLease, findOwnJob } from './claim.ts'
import { isOperationTerminal, type OperationRecord } from '../operations/record.ts'
import { truncateAt, headBytes, tailBytes } from './output-range.ts'
import { consumeNonce } from '../clusters/request-nonce.ts'
import { lastChunk, readChunks } from './result.ts'

/** Relays append output while a job runs; callers read it from a byte offset. */

const maxAttempts = 4
/** Output between head and tail is deleted each time this many bytes have been added. */
const truncateEveryBytes = 131_072
/** Even control characters, which take seven bytes each, fit into the response of a function. */
const readChunkLimit = 10
/** The pause between two reads doubles up to the longest one. */
const firstPauseMs = 250
const longestPauseMs = 1000

/** Idempotent by `seq`. */
export async function append(caller: RelayCaller, jobId: string, report: OutputReport): Promise<OutputResponse> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const job = await findOwnJob(caller, jobId)
    checkLease(job, caller, report.leaseId)
    if (isTerminal(job)) throw platformError('job_already_finished')
    const cancel = job.cancelRequestedAtMs !== undefined
    if (report.seq < job.nextSeq) return { nextSeq: job.nextSeq, cancel }
    if (report.seq > job.nextSeq) throw platformError('output_out_of_order')
    if (await transact(appendWrites(caller, job, report))) continue
    await deleteMiddle(job, Buffer.byteLength(report.data))
    return { nextSeq: report.seq + 1, cancel }
  }
  throw storeContention()
}

function appendWrites(caller: RelayCaller, job: JobRecord, { seq, nodeId, stream, data, leaseId }: OutputReport) {
  const { organisationId, id, outputBytes } = job
  const isNext = seq === 0 ? ({ absent: true } as const) : { is: seq }
  return [
    patch(
      keys.job(organisationId, id),
      { set: { nextSeq: seq + 1, leaseRenewedAtMs: now() }, add: { outputBytes: Buffer.byteLength(data) } },
      { status: { is: 'Running' }, leaseId: { is: leaseId }, nextSeq: isNext },
    ),
    create(keys.output(organisationId, id, outputBytes), { offset: outputBytes, nodeId, stream, data }),
    consumeNonce(caller),
  ]
}

/** Keeps the first 256 KiB and the last 768 KiB. The next append continues an interrupted deletion. */
async function deleteMiddle({ organisationId, id, outputBytes }: JobRecord, addedBytes: number): Promise<void> {
  const total = outputBytes + addedBytes
  const isDue = Math.floor(total / truncateEveryBytes) > Math.floor(outputBytes / truncateEveryBytes)
  // The chunk that may overlap the start of the tail is not deleted.
  const deleteTo = total - tailBytes - outputChunkBytes
  if (!isDue || deleteTo <= headBytes) return
  const { pk, sk: from } = keys.output(organisationId, id, headBytes)
  const { sk: to } = keys.output(organisationId, id, deleteTo)
  await removeAll({ pk, from, to })
}

export async function readOutput(caller: Caller, jobId: string, offset: number, waitSeconds = 0): Promise<JobOutput> {
  const deadlineMs = now() + waitSeconds * 1000
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const output = await outputNow(caller, jobId, offset)
    const leftMs = deadlineMs - now()
    if (output.items.length > 0 || output.finished || leftMs <= 0) return output
    await delay(Math.min(pauseMs, leftMs))
  }
}

async function outputNow({ organisationId }: Caller, jobId: string, offset: number): Promise<JobOutput> {
  const lookup = await findJob(organisationId, jobId, () => findStoredJob(organisationId, jobId))
  // Operations report steps instead of output.
  if ('operation' in lookup) return outputOfOperation(lookup.operation, offset)
  const { job } = lookup
  const items = offset >= job.outputBytes ? [] : await readFrom(job, offset)
  const last = items.at(-1)
  const nextOffset = last === undefined ? Math.max(offset, job.outputBytes) : last.offset + Buffer.byteLength(last.data)
  return { items, nextOffset, status: job.status, finished: isTerminal(job) && nextOffset >= job.outputBytes }
}

const outputOfOperation = (operation: OperationRecord, offset: number): JobOutput => ({
  items: [],
  nextOffset: offset,
  status: operation.status,
  finished: isOperationTerminal(operation),
})

/** Cuts the first chunk if the offset is inside it. */
async function readFrom(job: JobRecord, offset: number): Promise<OutputChunk[]> {
  const chunks = await readChunks(job, offset, readChunkLimit)
  if (chunks[0]?.offset === offset) return chunks
  const before = await lastChunk(job, offset)
  const isCut = before !== undefined && before.offset + Buffer.byteLength(before.data) > offset
  return isCut ? [{ ...before, ...truncateAt(before, offset) }, ...chunks] : chunks
}
