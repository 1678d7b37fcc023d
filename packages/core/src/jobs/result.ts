import { isUtf8 } from 'node:buffer'
import { type JobResult } from '@platform/contract/job'
import { OutputChunk } from '@platform/contract/job-output'
import { type Completion } from '@platform/contract/relay'
import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { type Item, replace, type WriteItem } from '../db/table.ts'
import { type JobRecord } from './record.ts'
import { type Chunk, chunkView, parseChunkView, readChunks } from './output-item.ts'
import { encodedSize, fitToResponse, joined, retained, separated } from './output-range.ts'

/** A result includes up to 32 KiB of output, so that reading a small job takes no further reads. */

/** Smaller results are part of the job's record. */
const maxRecordBytes = 1024
const maxInlineBytes = 32_768
/** Many small chunks need much more space than their text. */
const maxInlineChunks = 200
const maxInlineJsonBytes = 100_000

/** Limits the job's output and, separately, the output of all nodes. */
const maxOutputBytes = 2_400_000
/** A function response has at most 6 MB; the rest is for the fields of the job. */
const maxResponseBytes = 6_100_000

const Chunks = z.array(OutputChunk)
const NodeExits = z.array(z.object({ nodeId: z.string(), exitCode: z.number().nullable() }))
const ResultRecord = z.object({ exitCode: z.number().nullable(), nodes: z.string(), chunks: z.string().optional() })

/**
 * The field of the job's record, or the write of a separate item. `last` is output that is not stored yet; if the
 * record then has all output, it needs no item of its own.
 */
export async function resultOf(
  job: JobRecord,
  { exitCode, nodes }: Pick<Completion, 'exitCode' | 'nodes'>,
  last: readonly Chunk[] = [],
): Promise<{ field: { result?: string }; writes: WriteItem[]; hasOutput: boolean }> {
  const chunks = await inlineChunks(job, last)
  const result = {
    exitCode: exitCodeOf(nodes, exitCode),
    nodes: JSON.stringify(nodes),
    ...(chunks !== undefined && { chunks }),
  }
  const text = JSON.stringify(result)
  return Buffer.byteLength(text) <= maxRecordBytes
    ? { field: { result: text }, writes: [], hasOutput: chunks !== undefined }
    : { field: {}, writes: [replace(keys.result(job.organisationId, job.id), result)], hasOutput: false }
}

async function inlineChunks(job: JobRecord, last: readonly Chunk[]): Promise<string | undefined> {
  const { offset, bytes } = last.at(-1) ?? { offset: job.outputBytes, bytes: [] }
  if (offset + bytes.length > maxInlineBytes || job.nextSeq + last.length > maxInlineChunks) return undefined
  const stored = job.outputBytes === 0 ? [] : await readChunks(job, 0)
  const chunks = JSON.stringify([...stored, ...last].map(chunkView))
  return Buffer.byteLength(chunks) <= maxInlineJsonBytes ? chunks : undefined
}

/** Returns the first non-zero exit code of the nodes; if there is none, null if a node was stopped, and 0 otherwise. */
export function exitCodeOf(nodes: Completion['nodes'], reported: number | null): number | null {
  if (nodes.length === 0) return reported
  const failed = nodes.find(({ exitCode }) => exitCode !== null && exitCode !== 0)
  return failed?.exitCode ?? (nodes.some(({ exitCode }) => exitCode === null) ? null : 0)
}

/** The output is cut so that it fits into a function response together with the payload. */
export async function readResult(job: JobRecord, item: Item | undefined, payload: unknown): Promise<JobResult> {
  const record = ResultRecord.parse(job.result === undefined ? item : JSON.parse(job.result))
  const chunks =
    record.chunks === undefined
      ? await readChunks(job, 0)
      : Chunks.parse(JSON.parse(record.chunks)).map((chunk) => parseChunkView(chunk))
  const ranges = separated(retained(chunks, job.outputBytes))
  const nodes = NodeExits.parse(JSON.parse(record.nodes)).map((node) => ({
    ...node,
    output: joined(ranges, ({ nodeId }) => nodeId === node.nodeId).toString(),
  }))
  const all = joined(ranges)
  const text = all.toString()
  const fixedBytes = encodedSize([payload, nodes.map((node) => ({ ...node, output: '' }))])
  const maxBytes = Math.min(maxOutputBytes, (maxResponseBytes - fixedBytes) / 2)
  const output = fitToResponse(text, maxBytes)
  // The outputs of the nodes can be longer than the output of the job: bytes of several nodes that form a character
  // together are replaced separately for each node.
  const isNodeCut = nodes.reduce((bytes, node) => bytes + encodedSize(node.output), 0) > maxBytes
  const nodeBytes = isNodeCut ? maxBytes / nodes.length : maxBytes
  return {
    output,
    ...(!isUtf8(all) && { binary: true }),
    exitCode: record.exitCode,
    nodes: nodes.map((node) => ({ ...node, output: fitToResponse(node.output, nodeBytes) })),
    truncated: isNodeCut || output !== text || ranges.some(({ missingBytes }) => missingBytes > 0),
    totalBytes: job.outputBytes,
  }
}
