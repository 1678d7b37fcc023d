import { type JobResult } from '@platform/contract/job'
import { type OutputChunk, outputStreams } from '@platform/contract/job-output'
import { type Completion } from '@platform/contract/relay'
import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { type Item, query, queryAll, replace } from '../db/table.ts'
import { type JobRecord } from './record.ts'
import { fitToResponse, headBytes, retainedOutput, tailBytes } from './output-range.ts'

/** The result item includes up to 32 KiB of output, so that reading a small job takes no further reads. */

const maxInlineBytes = 32_768
/** Many small chunks need much more space than their text. */
const maxInlineChunks = 200
const maxInlineJsonBytes = 100_000

/**
 * Limits the job's output and, separately, the output of all nodes. A function response has at most 6 MB, and encoding
 * makes line breaks three times and control characters seven times as long.
 */
const maxResponseBytes = 2_400_000

const Chunks = z.array(
  z.object({ offset: z.number(), nodeId: z.string(), stream: z.enum(outputStreams), data: z.string() }),
)
const NodeExits = z.array(z.object({ nodeId: z.string(), exitCode: z.number().nullable() }))
const ResultRecord = z.object({ exitCode: z.number().nullable(), nodes: z.string(), chunks: z.string().optional() })

export async function resultWrite(job: JobRecord, { exitCode, nodes }: Pick<Completion, 'exitCode' | 'nodes'>) {
  const chunks = await inlineChunks(job)
  return replace(keys.result(job.organisationId, job.id), {
    exitCode: exitCodeOf(nodes, exitCode),
    nodes: JSON.stringify(nodes),
    ...(chunks === undefined ? {} : { chunks }),
  })
}

async function inlineChunks(job: JobRecord): Promise<string | undefined> {
  if (job.outputBytes > maxInlineBytes || job.nextSeq > maxInlineChunks) return undefined
  const chunks = JSON.stringify(job.outputBytes === 0 ? [] : await readChunks(job, 0))
  return Buffer.byteLength(chunks) <= maxInlineJsonBytes ? chunks : undefined
}

/** The first non-zero exit code of the nodes, otherwise 0; null if a node was stopped. */
export function exitCodeOf(nodes: Completion['nodes'], reported: number | null): number | null {
  if (nodes.length === 0) return reported
  const failed = nodes.find(({ exitCode }) => exitCode !== null && exitCode !== 0)
  return failed?.exitCode ?? (nodes.some(({ exitCode }) => exitCode === null) ? null : 0)
}

export async function readChunks(
  { organisationId, id }: JobRecord,
  fromOffset: number,
  limit?: number,
): Promise<OutputChunk[]> {
  const { pk, sk: from } = keys.output(organisationId, id, fromOffset)
  const { sk: to } = keys.output(organisationId, id, Number.MAX_SAFE_INTEGER)
  return Chunks.parse(await queryAll({ pk, from, to: `${to}~` }, limit))
}

export async function lastChunk({ organisationId, id }: JobRecord, offset: number): Promise<OutputChunk | undefined> {
  const { pk, sk: to } = keys.output(organisationId, id, offset)
  const { sk: from } = keys.output(organisationId, id, 0)
  const { items } = await query({ pk, from, to, limit: 1, newestFirst: true })
  return Chunks.parse(items)[0]
}

export async function readResult(job: JobRecord, item: Item): Promise<JobResult> {
  const record = ResultRecord.parse(item)
  const chunks = record.chunks === undefined ? await readChunks(job, 0) : Chunks.parse(JSON.parse(record.chunks))
  const textOf = (nodeChunks: readonly OutputChunk[], maxBytes: number) =>
    fitToResponse(retainedOutput(nodeChunks, job.outputBytes), maxBytes)
  const nodes = NodeExits.parse(JSON.parse(record.nodes))
  const retained = retainedOutput(chunks, job.outputBytes)
  const output = fitToResponse(retained, maxResponseBytes)
  const isCut = output !== retained
  const nodeBytes = isCut ? maxResponseBytes / nodes.length : maxResponseBytes
  return {
    output,
    exitCode: record.exitCode,
    nodes: nodes.map(({ nodeId, exitCode }) => ({
      nodeId,
      exitCode,
      output: textOf(
        chunks.filter((chunk) => chunk.nodeId === nodeId),
        nodeBytes,
      ),
    })),
    truncated: isCut || job.outputBytes > headBytes + tailBytes,
    totalBytes: job.outputBytes,
  }
}
