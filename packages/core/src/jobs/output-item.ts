import { isUtf8 } from 'node:buffer'
import { OutputChunk, outputStreams } from '@platform/contract/job-output'
import type { OutputPiece, OutputReport } from '@platform/contract/relay'
import * as z from 'zod'
import { now, optionalTimestamp } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, query, queryAll } from '../db/table.ts'
import type { ByteRange } from './output-range.ts'
import type { JobRecord } from './record.ts'

/**
 * Output of one node and stream. One item stores all chunks of a call, and its attribute `chunks` contains their
 * boundaries.
 */
export interface Chunk extends ByteRange {
  nodeId: string
  stream: OutputChunk['stream']
  atMs?: number | undefined
}

const Boundaries = z.array(z.tuple([z.number(), z.string(), z.enum(outputStreams), z.number()]))
const OutputItem = z.object({ data: z.instanceof(Uint8Array), chunks: z.string(), atMs: z.number().optional() })

/** Returns the chunks of a call. `from` is the offset in the job's output at which the call continues. */
export function chunksOf(
  { chunks, nodeId, stream, data }: Omit<OutputReport, 'leaseId' | 'seq'>,
  from: number,
): Chunk[] {
  const singlePieces: OutputPiece[] = nodeId && stream && data ? [{ nodeId, stream, data }] : []
  let nextOffset = from
  return (chunks ?? singlePieces).map((chunk) => {
    const bytes = Buffer.from(chunk.data, chunk.encoding ?? 'utf8')
    const offset = nextOffset + (chunk.droppedBytes ?? 0)
    nextOffset = offset + bytes.length
    return { offset, nodeId: chunk.nodeId, stream: chunk.stream, bytes }
  })
}

export const toItem = (chunks: readonly Chunk[]): Item => ({
  data: Buffer.concat(chunks.map(({ bytes }) => bytes)),
  chunks: JSON.stringify(chunks.map(({ offset, nodeId, stream, bytes }) => [offset, nodeId, stream, bytes.length])),
  atMs: now(),
})

export function fromItem(item: Item): Chunk[] {
  const { data, chunks, atMs } = OutputItem.parse(item)
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  let position = 0
  return Boundaries.parse(JSON.parse(chunks)).map(([offset, nodeId, stream, length]) => {
    const start = position
    position += length
    return { offset, nodeId, stream, bytes: bytes.subarray(start, position), atMs }
  })
}

const chunkView = ({ offset, nodeId, stream, bytes, atMs }: Chunk): OutputChunk => ({
  offset,
  nodeId,
  stream,
  ...(isUtf8(bytes) ? { data: bytes.toString() } : { data: bytes.toString('base64'), encoding: 'base64' as const }),
  ...optionalTimestamp('at', atMs),
})

/**
 * Omits a time that equals the previous one, because the times of many small chunks could exceed the response limit.
 */
export const chunkViews = (chunks: readonly Chunk[]): OutputChunk[] =>
  chunks.map(chunkView).map(({ at, ...chunk }, index, all) => (at === all[index - 1]?.at ? chunk : { ...chunk, at }))

/** `firstAtMs` is the time of the chunks before the first one with a time. */
export function parseChunkViews(views: readonly OutputChunk[], firstAtMs?: number): Chunk[] {
  let atMs = firstAtMs
  return views.map(({ data, encoding, at, ...chunk }) => {
    if (at !== undefined) atMs = Date.parse(at)
    return { ...chunk, bytes: Buffer.from(data, encoding ?? 'utf8'), atMs }
  })
}

const StoredResult = z.object({ chunks: z.array(OutputChunk).optional() })

function chunksInRecord({ result, completedAtMs }: JobRecord): Chunk[] | undefined {
  const { chunks } = result === undefined ? {} : StoredResult.parse(JSON.parse(result))
  return chunks && parseChunkViews(chunks, completedAtMs)
}

/** Returns the chunks of at most `limit` calls, from the first call that begins at the offset or later. */
export async function readChunks(job: JobRecord, offset: number, limit?: number): Promise<Chunk[]> {
  const recordedChunks = chunksInRecord(job)
  if (recordedChunks !== undefined) return recordedChunks.filter((chunk) => chunk.offset >= offset)
  const { organisationId, id } = job
  const { pk, sk: from } = keys.output(organisationId, id, offset)
  const { sk: to } = keys.output(organisationId, id, Number.MAX_SAFE_INTEGER)
  return (await queryAll({ pk, from, to: `${to}~` }, limit)).flatMap(fromItem)
}

/** Returns the chunks of the last call that begins before the offset. */
export async function chunksBefore(job: JobRecord, offset: number): Promise<Chunk[]> {
  const recordedChunks = chunksInRecord(job)
  if (recordedChunks !== undefined) return recordedChunks.filter((chunk) => chunk.offset < offset)
  const { organisationId, id } = job
  if (offset === 0) return []
  const { pk, sk: to } = keys.output(organisationId, id, offset - 1)
  const { sk: from } = keys.output(organisationId, id, 0)
  const { items } = await query({ pk, from, to, limit: 1, isNewestFirst: true })
  return items.flatMap(fromItem)
}
