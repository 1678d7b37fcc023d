import { isUtf8 } from 'node:buffer'
import type { JobResult } from '@platform/contract/job'
import { OutputChunk } from '@platform/contract/job-output'
import { OutputHash } from '@platform/contract/output-hash'
import type { Completion } from '@platform/contract/relay'
import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, replace, type WriteItem } from '../db/table.ts'
import type { JobRecord } from './record.ts'
import { type Chunk, chunkViews, fromItem, parseChunkViews, readChunks } from './output-item.ts'
import { encodedSize, fitToResponse, joinRanges, retainedRanges, separateRanges } from './output-range.ts'

/** A result includes small output, so that reading the result needs no output items. */

/** Results up to this size are part of the job's record. */
const maxRecordBytes = 1024
const maxInlineBytes = 32_768
/** Many small chunks need much more space than their text. */
const maxInlineChunks = 200
const maxInlineJsonBytes = 100_000

/** Limits the job's output and, separately, the output of all nodes. */
const maxOutputBytes = 2_400_000
/** A function response has at most 6 MiB; the rest is for the fields of the job. */
const maxResponseBytes = 6_100_000

const ResultRecord = z.object({
  nodes: z.array(z.object({ nodeId: z.string(), exitCode: z.number().nullable() })),
  chunks: z.array(OutputChunk).optional(),
})

/**
 * Returns the fields of the job's record, and the write of a separate item for a large result. `newChunks` is output
 * that is not stored yet; if `hasOutput` is true, the record contains this output, which then needs no item of its own.
 */
export async function resultOf(
  job: JobRecord,
  { exitCode: reportedCode, nodes, outputSha256 }: Pick<Completion, 'exitCode' | 'nodes' | 'outputSha256'>,
  newChunks: readonly Chunk[] = [],
): Promise<{ fields: ResultFields; writes: WriteItem[]; hasOutput: boolean }> {
  const allChunks = await smallOutput(job, newChunks)
  const chunks = allChunks && inlineViews(allChunks)
  const exitCode = exitCodeOf(nodes, reportedCode)
  const outputHash = (allChunks && hashOf(allChunks)) ?? outputSha256
  const fields = {
    ...(exitCode !== null && { exitCode }),
    ...(outputHash !== undefined && { outputSha256: Buffer.from(outputHash, 'hex') }),
  }
  const result = JSON.stringify({ nodes, chunks })
  return Buffer.byteLength(result) <= maxRecordBytes
    ? { fields: { ...fields, result }, writes: [], hasOutput: chunks !== undefined }
    : { fields, writes: [replace(keys.result(job.organisationId, job.id), { result })], hasOutput: false }
}

type ResultFields = Pick<JobRecord, 'result' | 'exitCode' | 'outputSha256'>

async function smallOutput(job: JobRecord, newChunks: readonly Chunk[]): Promise<Chunk[] | undefined> {
  const { offset, bytes } = newChunks.at(-1) ?? { offset: job.outputBytes, bytes: [] }
  if (offset + bytes.length > maxInlineBytes || job.nextSeq + newChunks.length > maxInlineChunks) return undefined
  const storedChunks = job.outputBytes === 0 ? [] : await readChunks(job, 0)
  // Without earlier output, the time is that of the result.
  const receivedChunks = newChunks.map((chunk) => ({ ...chunk, atMs: storedChunks.length === 0 ? undefined : now() }))
  return [...storedChunks, ...receivedChunks]
}

function inlineViews(allChunks: readonly Chunk[]): OutputChunk[] | undefined {
  const views = chunkViews(allChunks)
  return Buffer.byteLength(JSON.stringify(views)) <= maxInlineJsonBytes ? views : undefined
}

/** Returns undefined if the relay has dropped some of the output. */
function hashOf(allChunks: readonly Chunk[]): string | undefined {
  const hash = new OutputHash()
  let position = 0
  for (const { offset, nodeId, stream, bytes } of allChunks) {
    if (offset !== position) return undefined
    position += bytes.length
    hash.append(nodeId, stream, bytes)
  }
  return hash.digest()
}

/** Returns the first non-zero exit code, else null if a node was stopped, else 0; `reportedCode` without nodes. */
export function exitCodeOf(nodes: Completion['nodes'], reportedCode: number | null): number | null {
  if (nodes.length === 0) return reportedCode
  const failedNode = nodes.find(({ exitCode }) => exitCode !== null && exitCode !== 0)
  return failedNode?.exitCode ?? (nodes.some(({ exitCode }) => exitCode === null) ? null : 0)
}

const resultRecord = (job: Pick<JobRecord, 'result'>, item: Item | undefined) =>
  ResultRecord.parse(JSON.parse(job.result ?? String(item?.['result'])))

const inlineChunks = ({ chunks }: z.infer<typeof ResultRecord>): Chunk[] | undefined =>
  chunks && parseChunkViews(chunks)

/** Returns the keys of the items with the start of the output; none if there is no output or the record contains it. */
export function startKeys({ organisationId, id, result, outputBytes }: JobRecord): keys.Key[] {
  const isInRecord = outputBytes === 0 || (result !== undefined && resultRecord({ result }, undefined).chunks)
  return isInRecord ? [] : [keys.result(organisationId, id), keys.output(organisationId, id, 0)]
}

/** Returns at most `length` characters, from the items of `startKeys` and without a further read. */
export function startOfOutput(job: JobRecord, [result, output]: readonly (Item | undefined)[], length: number) {
  const inline = (job.result ?? result) === undefined ? undefined : inlineChunks(resultRecord(job, result))
  const chunks = inline ?? (output === undefined ? [] : fromItem(output))
  const bytes = Buffer.concat(chunks.map((chunk) => chunk.bytes))
  const text = bytes.toString()
  return {
    text: text.slice(0, length).toWellFormed(),
    isTruncated: text.length > length || bytes.length < job.outputBytes,
  }
}

/** The output is cut so that it fits into a function response together with the payload. */
export async function readResult(job: JobRecord, item: Item | undefined, payload: unknown): Promise<JobResult> {
  const record = resultRecord(job, item)
  const chunks = inlineChunks(record) ?? (await readChunks(job, 0))
  const ranges = separateRanges(retainedRanges(chunks, job.outputBytes))
  const nodes = record.nodes.map((node) => ({
    ...node,
    output: joinRanges(ranges, ({ nodeId }) => nodeId === node.nodeId).toString(),
  }))
  const allBytes = joinRanges(ranges)
  const text = allBytes.toString()
  const fixedBytes = encodedSize([payload, nodes.map((node) => ({ ...node, output: '' }))])
  const maxBytes = Math.min(maxOutputBytes, (maxResponseBytes - fixedBytes) / 2)
  const output = fitToResponse(text, maxBytes)
  // The outputs of the nodes can be longer than the output of the job: bytes of several nodes that form a character
  // together are replaced separately for each node.
  const isNodeCut = nodes.reduce((bytes, node) => bytes + encodedSize(node.output), 0) > maxBytes
  const nodeBytes = isNodeCut ? maxBytes / nodes.length : maxBytes
  return {
    output,
    ...(!isUtf8(allBytes) && { binary: true }),
    exitCode: job.exitCode ?? null,
    nodes: nodes.map((node) => ({ ...node, output: fitToResponse(node.output, nodeBytes) })),
    truncated: isNodeCut || output !== text || ranges.some(({ missingBytes }) => missingBytes > 0),
    totalBytes: job.outputBytes,
    ...(job.outputSha256 && { outputSha256: Buffer.from(job.outputSha256).toString('hex') }),
  }
}
