import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import * as z from 'zod'
import * as keys from '../../db/keys.ts'
import { create, getConsistent, type Item, type WriteItem } from '../../db/table.ts'

/**
 * The jobs of an open batch, before they stand in the table: compressed items of a few dozen jobs each, so that accepting
 * 500 jobs is one transaction. A chunk holds one line for each job: its facts, a tab, its payload. Facts name a cluster by
 * its place in the batch's list of clusters, which is an item of its own.
 */

/** A job that was accepted with a batch. `payload` is its JSON. */
export interface PendingJob {
  clusterId: string
  timeoutSeconds: number
  deliverWithinSeconds: number
  payload: string
}

/** A chunk of small jobs is read whole to show one of them. */
const chunkBytes = 65_536
/** A transaction holds 100 writes, and chunks of jobs that fit badly are half empty. */
const chunkLimit = 88
const inflatedBytes = 16_777_216

/** A caller waits for this: the quickest level takes half the time of the usual one, and finds what repeats as well. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 }
const squeeze = (text: string): Uint8Array => zstdCompressSync(text, { params })
const inflate = (value: unknown): string =>
  zstdDecompressSync(z.instanceof(Uint8Array).parse(value), { maxOutputLength: inflatedBytes }).toString()

/** The clusters that jobs name, each once, in the order of their first job. */
export const clustersOf = (jobs: readonly PendingJob[]): string[] => [
  ...new Set(jobs.map(({ clusterId }) => clusterId)),
]

/** The steps that store the jobs of a batch, and the index of the first job of each chunk. */
export function storeChunks(organisationId: string, batchId: string, jobs: readonly PendingJob[]) {
  const clusterIds = clustersOf(jobs)
  const places = new Map(clusterIds.map((id, place) => [id, place]))
  const lines = jobs.map(
    ({ clusterId, timeoutSeconds, deliverWithinSeconds, payload }) =>
      `${JSON.stringify([places.get(clusterId), timeoutSeconds, deliverWithinSeconds])}\t${payload}`,
  )
  const starts = startsOf(lines.map((line) => Buffer.byteLength(line) + 1))
  const chunks = starts.map((start, chunk) => squeeze(lines.slice(start, starts[chunk + 1]).join('\n')))
  const steps: WriteItem[] = [
    create(keys.batchClusters(organisationId, batchId), { clusters: squeeze(clusterIds.join('\n')) }),
    ...chunks.map((jobsOfChunk, chunk) =>
      create(keys.batchChunk(organisationId, batchId, chunk), { jobs: jobsOfChunk }),
    ),
  ]
  return { starts, steps }
}

/** Where chunks begin: each as full as it may be, one larger job by itself. */
function startsOf(sizes: readonly number[]): number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const limit = Math.max(chunkBytes, (2 * total) / chunkLimit)
  const starts = [0]
  let filled = 0
  for (const [index, size] of sizes.entries()) {
    if (filled > 0 && filled + size > limit) {
      starts.push(index)
      filled = 0
    }
    filled += size
  }
  return starts
}

/** The keys of everything that is stored of an open batch beside its row. */
export const chunkKeys = (organisationId: string, batchId: string, starts: readonly number[]): keys.Key[] => [
  keys.batchClusters(organisationId, batchId),
  ...starts.map((_, chunk) => keys.batchChunk(organisationId, batchId, chunk)),
]

/** The clusters of a stored list. */
export const parseClusters = (item: Item): string[] => inflate(item['clusters']).split('\n')

const Facts = z.tuple([z.number(), z.number(), z.number()])

const parseChunk = (item: Item, clusterIds: readonly string[]): PendingJob[] =>
  inflate(item['jobs'])
    .split('\n')
    .map((line) => {
      const tab = line.indexOf('\t')
      const [place, timeoutSeconds, deliverWithinSeconds] = Facts.parse(JSON.parse(line.slice(0, tab)))
      return { clusterId: clusterIds[place] ?? '', timeoutSeconds, deliverWithinSeconds, payload: line.slice(tab + 1) }
    })

/**
 * The jobs of an open batch by their index, from the chunk on that holds `from`, up to the one that holds `to`. Undefined
 * where the batch is not open any more. One call.
 */
export async function readPendingJobs(
  { organisationId, id, starts }: { organisationId: string; id: string; starts: readonly number[] },
  from: number,
  to: number = Number.MAX_SAFE_INTEGER,
): Promise<Map<number, PendingJob> | undefined> {
  const wanted = starts
    .map((start, chunk) => ({ start, chunk, end: starts[chunk + 1] ?? Number.MAX_SAFE_INTEGER }))
    .filter(({ start, end }) => start <= to && end > from)
  const [clusters, ...chunks] = await getConsistent([
    keys.batchClusters(organisationId, id),
    ...wanted.map(({ chunk }) => keys.batchChunk(organisationId, id, chunk)),
  ])
  if (clusters === undefined) return undefined
  const clusterIds = parseClusters(clusters)
  const jobs = new Map<number, PendingJob>()
  for (const [place, { start }] of wanted.entries()) {
    const item = chunks[place]
    if (item === undefined) return undefined
    for (const [index, job] of parseChunk(item, clusterIds).entries()) jobs.set(start + index, job)
  }
  return jobs
}
