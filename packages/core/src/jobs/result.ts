import { type JobResult } from '@platform/contract/job'
import { type OutputChunk, outputStreams } from '@platform/contract/job-output'
import { type Completion } from '@platform/contract/relay'
import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { type Item, query, queryAll, replace } from '../db/table.ts'
import { type JobRecord } from './record.ts'
import { fitToResponse, headBytes, retainedOutput, tailBytes } from './output-range.ts'

/** Results of ended jobs. Up to 32 KiB of output are in the result item; more stays in its chunks. */

const inlineBytes = 32_768
/** Many small chunks take much more space than their text and stay separate. */
const inlineChunks = 200
const inlineJsonBytes = 100_000

/**
 * A function response has at most 6 MB; line breaks grow threefold there, control characters sevenfold. The limit of
 * output and of nodes, each.
 */
const shownBytes = 2_400_000

const Chunks = z.array(
  z.object({ offset: z.number(), nodeId: z.string(), stream: z.enum(outputStreams), data: z.string() }),
)
const NodeExits = z.array(z.object({ nodeId: z.string(), exitCode: z.number().nullable() }))
const Row = z.object({ exitCode: z.number().nullable(), nodes: z.string(), chunks: z.string().optional() })

/** The write that stores a result. One call if there is little output. */
export async function resultWrite(job: JobRecord, { exitCode, nodes }: Pick<Completion, 'exitCode' | 'nodes'>) {
  const chunks = await inlined(job)
  return replace(keys.result(job.organisationId, job.id), {
    exitCode: exitCodeOf(nodes, exitCode),
    nodes: JSON.stringify(nodes),
    ...(chunks === undefined ? {} : { chunks }),
  })
}

async function inlined(job: JobRecord): Promise<string | undefined> {
  if (job.outputBytes > inlineBytes || job.nextSeq > inlineChunks) return undefined
  const chunks = JSON.stringify(job.outputBytes === 0 ? [] : await readChunks(job, 0))
  return Buffer.byteLength(chunks) <= inlineJsonBytes ? chunks : undefined
}

/** The first non-zero exit code of the nodes, else 0; null if a node was stopped. */
export function exitCodeOf(nodes: Completion['nodes'], reported: number | null): number | null {
  if (nodes.length === 0) return reported
  const failed = nodes.find(({ exitCode }) => exitCode !== null && exitCode !== 0)
  return failed?.exitCode ?? (nodes.some(({ exitCode }) => exitCode === null) ? null : 0)
}

/** All stored output from a byte offset on. One call per MB. */
export async function readChunks(
  { organisationId, id }: JobRecord,
  fromOffset: number,
  limit?: number,
): Promise<OutputChunk[]> {
  const { pk, sk: from } = keys.output(organisationId, id, fromOffset)
  const { sk: to } = keys.output(organisationId, id, Number.MAX_SAFE_INTEGER)
  return Chunks.parse(await queryAll({ pk, from, to: `${to}~` }, limit))
}

/** The last stored chunk that starts at or before a byte offset. One call. */
export async function lastChunk({ organisationId, id }: JobRecord, offset: number): Promise<OutputChunk | undefined> {
  const { pk, sk: to } = keys.output(organisationId, id, offset)
  const { sk: from } = keys.output(organisationId, id, 0)
  const { items } = await query({ pk, from, to, limit: 1, newestFirst: true })
  return Chunks.parse(items)[0]
}

/** The API representation of a stored result. */
export async function readResult(job: JobRecord, item: Item): Promise<JobResult> {
  const row = Row.parse(item)
  const chunks = row.chunks === undefined ? await readChunks(job, 0) : Chunks.parse(JSON.parse(row.chunks))
  const textOf = (part: readonly OutputChunk[], share: number) =>
    fitToResponse(retainedOutput(part, job.outputBytes), share)
  const nodes = NodeExits.parse(JSON.parse(row.nodes))
  const whole = retainedOutput(chunks, job.outputBytes)
  const output = fitToResponse(whole, shownBytes)
  const isCut = output !== whole
  const share = isCut ? shownBytes / nodes.length : shownBytes
  return {
    output,
    exitCode: row.exitCode,
    nodes: nodes.map(({ nodeId, exitCode }) => ({
      nodeId,
      exitCode,
      output: textOf(
        chunks.filter((chunk) => chunk.nodeId === nodeId),
        share,
      ),
    })),
    truncated: isCut || job.outputBytes > headBytes + tailBytes,
    totalBytes: job.outputBytes,
  }
}
