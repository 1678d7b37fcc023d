import { type JobResult, type OutputChunk, outputStreams } from '@platform/contract/job'
import { type Completion } from '@platform/contract/relay'
import * as z from 'zod'
import * as keys from './db/keys.ts'
import { type Item, query, replace } from './db/table.ts'
import { type JobRow } from './job-row.ts'
import { headBytes, keptText, tailBytes } from './output-window.ts'

/** Results of ended jobs (D27). Output up to 32 KiB stands in the result's own item, more in the items it arrived in. */

const inlineBytes = 32_768

const Chunks = z.array(
  z.object({ offset: z.number(), nodeId: z.string(), stream: z.enum(outputStreams), data: z.string() }),
)
const NodeExits = z.array(z.object({ nodeId: z.string(), exitCode: z.number().nullable() }))
const Row = z.object({ exitCode: z.number().nullable(), nodes: z.string(), chunks: z.string().optional() })

/** The step that stores the result of a run. One call where there is little output. */
export async function resultStep(job: JobRow, { exitCode, nodes }: Pick<Completion, 'exitCode' | 'nodes'>) {
  const isSmall = job.outputBytes <= inlineBytes
  const chunks = isSmall && job.outputBytes > 0 ? await readChunks(job, 0) : []
  return replace(keys.result(job.organisationId, job.id), {
    exitCode,
    nodes: JSON.stringify(nodes),
    ...(isSmall ? { chunks: JSON.stringify(chunks) } : {}),
  })
}

/** All stored output from a byte offset on. One call per MB. */
export async function readChunks(
  { organisationId, id }: JobRow,
  fromOffset: number,
  limit = Number.POSITIVE_INFINITY,
): Promise<OutputChunk[]> {
  const { pk, sk: from } = keys.output(organisationId, id, fromOffset)
  const { sk: to } = keys.output(organisationId, id, Number.MAX_SAFE_INTEGER)
  const chunks: OutputChunk[] = []
  let after: Item | undefined
  do {
    const part = await query({
      pk,
      from,
      to: `${to}~`,
      ...(Number.isFinite(limit) && { limit: limit - chunks.length }),
      ...(after && { after }),
    })
    chunks.push(...Chunks.parse(part.items))
    after = part.next
  } while (after !== undefined && chunks.length < limit)
  return chunks
}

/** The last stored chunk that begins at or before a byte offset. One call. */
export async function lastChunk({ organisationId, id }: JobRow, offset: number): Promise<OutputChunk | undefined> {
  const { pk, sk: to } = keys.output(organisationId, id, offset)
  const { sk: from } = keys.output(organisationId, id, 0)
  const { items } = await query({ pk, from, to, limit: 1, newestFirst: true })
  return Chunks.parse(items)[0]
}

/** The wire form of a stored result. */
export async function readResult(job: JobRow, item: Item): Promise<JobResult> {
  const row = Row.parse(item)
  const chunks = row.chunks === undefined ? await readChunks(job, 0) : Chunks.parse(JSON.parse(row.chunks))
  const textOf = (part: readonly OutputChunk[]) => keptText(part, job.outputBytes)
  return {
    output: textOf(chunks),
    exitCode: row.exitCode,
    nodes: NodeExits.parse(JSON.parse(row.nodes)).map((node) => ({
      ...node,
      output: textOf(chunks.filter(({ nodeId }) => nodeId === node.nodeId)),
    })),
    truncated: job.outputBytes > headBytes + tailBytes,
    totalBytes: job.outputBytes,
  }
}
