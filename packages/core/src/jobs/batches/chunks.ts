import * as z from 'zod'
import { parseClusterIds } from '../../clusters/removal-guard.ts'
import * as keys from '../../db/keys.ts'
import { create, getConsistent, type Item, type WriteItem } from '../../db/table.ts'
import { compress, decompress } from '../../lib/compression.ts'

/**
 * The jobs of an open batch are stored in compressed chunks, so that one transaction can accept 500 jobs. A chunk has
 * one line per job: metadata, a tab, and the payload, which is empty if it equals the payload of the previous job of
 * the chunk. The metadata refers to a cluster by its index in the batch's cluster list, which is a separate item.
 */

/** `payload` is JSON text. */
export interface PendingJob {
  clusterId: string
  timeoutSeconds: number
  deliverWithinSeconds: number
  payload: string
}

/** The usual maximum size before compression. It is limited, because reading one job reads its whole chunk. */
const chunkBytes = 65_536
/** A transaction has at most 100 writes; the batch's other items need the rest. */
const maxChunks = 87

export const clustersOf = (jobs: readonly PendingJob[]): string[] => [
  ...new Set(jobs.map(({ clusterId }) => clusterId)),
]

/** `starts` contains the index of each chunk's first job. */
export function storeChunks(organisationId: string, batchId: string, jobs: readonly PendingJob[]) {
  const clusterIds = clustersOf(jobs)
  const indexes = new Map(clusterIds.map((id, index) => [id, index]))
  const isRepeat = (index: number) => index > 0 && jobs[index]?.payload === jobs[index - 1]?.payload
  const metadata = jobs.map(({ clusterId, timeoutSeconds, deliverWithinSeconds }) =>
    JSON.stringify([indexes.get(clusterId), timeoutSeconds, deliverWithinSeconds]),
  )
  const starts = startsOf(
    jobs.map(
      ({ payload }, index) => (metadata[index]?.length ?? 0) + (isRepeat(index) ? 0 : Buffer.byteLength(payload)) + 2,
    ),
  )
  const chunks = starts.map((start, chunk) => {
    const lines = jobs.slice(start, starts[chunk + 1]).map(({ payload }, offset) => {
      const index = start + offset
      return `${metadata[index]}\t${offset > 0 && isRepeat(index) ? '' : payload}`
    })
    return compress(lines.join('\n'))
  })
  const writes: WriteItem[] = [
    create(keys.batchClusters(organisationId, batchId), { clusters: compress(clusterIds.join('\n')) }),
    ...chunks.map((chunkJobs, index) => create(keys.batchChunk(organisationId, batchId, index), { jobs: chunkJobs })),
  ]
  return { starts, writes }
}

/** Fills each chunk as far as possible; a job that exceeds the limit gets its own chunk. */
function startsOf(sizes: readonly number[]): number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const maxBytes = Math.max(chunkBytes, (2 * total) / maxChunks)
  const starts = [0]
  let bytes = 0
  for (const [index, size] of sizes.entries()) {
    if (bytes > 0 && bytes + size > maxBytes) {
      starts.push(index)
      bytes = 0
    }
    bytes += size
  }
  return starts
}

export const chunkKeys = (organisationId: string, batchId: string, starts: readonly number[]): keys.Key[] => [
  keys.batchClusters(organisationId, batchId),
  ...starts.map((_, index) => keys.batchChunk(organisationId, batchId, index)),
]

const Metadata = z.tuple([z.number(), z.number(), z.number()])

function parseChunk(item: Item, clusterIds: readonly string[]): PendingJob[] {
  let payload = ''
  return decompress(item['jobs'])
    .split('\n')
    .map((line) => {
      const tab = line.indexOf('\t')
      const [clusterIndex, timeoutSeconds, deliverWithinSeconds] = Metadata.parse(JSON.parse(line.slice(0, tab)))
      payload = line.slice(tab + 1) || payload
      return { clusterId: clusterIds[clusterIndex] ?? '', timeoutSeconds, deliverWithinSeconds, payload }
    })
}

/**
 * Returns all jobs of the chunks that contain the jobs `from` to `to`, by index, or undefined if the batch is no longer
 * open.
 */
export async function readPendingJobs(
  { organisationId, id, starts }: { organisationId: string; id: string; starts: readonly number[] },
  from: number,
  to: number = Number.MAX_SAFE_INTEGER,
): Promise<Map<number, PendingJob> | undefined> {
  const ranges = starts
    .map((start, index) => ({ start, index, end: starts[index + 1] ?? Number.MAX_SAFE_INTEGER }))
    .filter(({ start, end }) => start <= to && end > from)
  const [clustersItem, ...chunks] = await getConsistent([
    keys.batchClusters(organisationId, id),
    ...ranges.map(({ index }) => keys.batchChunk(organisationId, id, index)),
  ])
  if (clustersItem === undefined) return undefined
  const clusterIds = parseClusterIds(clustersItem)
  const jobs = new Map<number, PendingJob>()
  for (const [rangeIndex, { start }] of ranges.entries()) {
    const item = chunks[rangeIndex]
    if (item === undefined) return undefined
    for (const [index, job] of parseChunk(item, clusterIds).entries()) jobs.set(start + index, job)
  }
  return jobs
}
