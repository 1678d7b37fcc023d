/**
 * Finds the n-th newest of many records without reading all newer ones. Records are grouped in order of creation into
 * buckets of at most 50; seven bytes store the start time and size of a bucket. If all buckets are full, 100,000
 * records need 14 KB. Creation times within a list are distinct.
 */

const bucketBytes = 7
const bucketSize = 50

export type OffsetIndex = Uint8Array<ArrayBuffer>

const view = (index: OffsetIndex): DataView => new DataView(index.buffer, index.byteOffset, index.byteLength)
const startMs = (index: OffsetIndex, bucket: number): number =>
  view(index).getUint16(bucket * bucketBytes) * 2 ** 32 + view(index).getUint32(bucket * bucketBytes + 2)
const recordCountIn = (index: OffsetIndex, bucket: number): number => index[bucket * bucketBytes + 6] ?? 0
const bucketCount = (index: OffsetIndex): number => index.length / bucketBytes

export const emptyOffsets = (): OffsetIndex => new Uint8Array()

/** `timeMs` must be later than the times of all existing records. */
export function withRecord(index: OffsetIndex, timeMs: number): OffsetIndex {
  const lastBucket = bucketCount(index) - 1
  if (lastBucket >= 0 && recordCountIn(index, lastBucket) < bucketSize) return withCountChanged(index, lastBucket, 1)
  const longerIndex = new Uint8Array(index.length + bucketBytes)
  longerIndex.set(index)
  const bytes = view(longerIndex)
  bytes.setUint16(index.length, Math.floor(timeMs / 2 ** 32))
  bytes.setUint32(index.length + 2, timeMs % 2 ** 32)
  longerIndex[index.length + 6] = 1
  return longerIndex
}

export function withoutRecord(index: OffsetIndex, timeMs: number): OffsetIndex {
  const bucket = findBucket(index, timeMs)
  if (bucket < 0) return index
  if (recordCountIn(index, bucket) > 1) return withCountChanged(index, bucket, -1)
  const shorterIndex = new Uint8Array(index.length - bucketBytes)
  shorterIndex.set(index.subarray(0, bucket * bucketBytes))
  shorterIndex.set(index.subarray((bucket + 1) * bucketBytes), bucket * bucketBytes)
  return shorterIndex
}

function withCountChanged(index: OffsetIndex, bucket: number, delta: number): OffsetIndex {
  const updatedIndex = index.slice()
  updatedIndex[bucket * bucketBytes + 6] = recordCountIn(index, bucket) + delta
  return updatedIndex
}

/** Returns the number of the last bucket that starts at or before a time; -1 if none does. */
function findBucket(index: OffsetIndex, timeMs: number): number {
  let low = 0
  let high = bucketCount(index)
  while (low < high) {
    const middle = (low + high) >>> 1
    if (startMs(index, middle) <= timeMs) low = middle + 1
    else high = middle
  }
  return low - 1
}

/**
 * Returns undefined if the list has at most `offset` records. Otherwise the caller reads records older than `beforeMs`
 * (all if undefined), newest first, and skips the first `skippedCount`.
 */
export function seekOffset(
  index: OffsetIndex,
  offset: number,
): { beforeMs: number | undefined; skippedCount: number } | undefined {
  let skippedCount = offset
  for (let bucket = bucketCount(index) - 1; bucket >= 0; bucket--) {
    const recordCount = recordCountIn(index, bucket)
    if (skippedCount < recordCount) {
      const isNewest = bucket === bucketCount(index) - 1
      return { beforeMs: isNewest ? undefined : startMs(index, bucket + 1), skippedCount }
    }
    skippedCount -= recordCount
  }
  return undefined
}
