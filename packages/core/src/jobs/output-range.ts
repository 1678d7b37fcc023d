/**
 * The first 256 KiB and about the last 768 KiB of a job's output are retained. Where output is missing, the ranges
 * beside the gap are cut at the end of a line, and the joined text has a line with the number of missing bytes.
 */

export const headBytes = 262_144
export const tailBytes = 786_432

/** A line that is longer than this may be cut in the middle. */
const lineSearchBytes = 8192
const newline = 0x0a
/** The lines that mark gaps must fit into 1 MiB too. */
const markerBytes = 1024

export interface ByteRange {
  offset: number
  bytes: Buffer
}

/** A range with the number of bytes that are missing before it. */
export type SeparatedRange<Range extends ByteRange> = Range & { missingBytes: number }

const endOf = ({ offset, bytes }: ByteRange): number => offset + bytes.length

/**
 * Returns the parts of `ranges` that are retained. `ranges` must be in order of their offsets; `totalBytes` includes
 * output that was not retained.
 */
export function retainedRanges<Range extends ByteRange>(ranges: readonly Range[], totalBytes: number): Range[] {
  if (totalBytes <= headBytes + tailBytes) return [...ranges]
  const tailFrom = totalBytes - tailBytes + markerBytes
  return ranges
    .flatMap((range) => [clip(range, 0, headBytes), clip(range, tailFrom, totalBytes)])
    .filter(({ bytes }) => bytes.length > 0)
}

function clip<Range extends ByteRange>(range: Range, from: number, to: number): Range {
  const start = Math.max(0, from - range.offset)
  const bytes = range.bytes.subarray(start, Math.max(start, to - range.offset))
  return { ...range, offset: range.offset + Math.min(start, range.bytes.length), bytes }
}

/**
 * Cuts the ranges on both sides of each gap at the end of a line, if one is near. `from` is the offset at which the first
 * range is expected.
 */
export function separateRanges<Range extends ByteRange>(ranges: readonly Range[], from = 0): SeparatedRange<Range>[] {
  const runs = runsOf(ranges)
  let expectedOffset = from
  return runs.flatMap((run, index) => {
    const start = run[0]!.offset
    const bytes = Buffer.concat(run.map((range) => range.bytes))
    const [first, last] = [
      start > expectedOffset ? lineStart(bytes) : 0,
      index < runs.length - 1 ? lineEnd(bytes) : bytes.length,
    ]
    // A run of which nothing would remain is not cut.
    const [keepFrom, keepTo] = first < last ? [first, last] : [0, bytes.length]
    return run
      .map((range) => clip(range, start + keepFrom, start + keepTo))
      .filter((range) => range.bytes.length > 0)
      .map((range) => {
        const missingBytes = Math.max(0, range.offset - expectedOffset)
        expectedOffset = endOf(range)
        return { ...range, missingBytes }
      })
  })
}

function runsOf<Range extends ByteRange>(ranges: readonly Range[]): Range[][] {
  const runs: Range[][] = []
  let end = -1
  for (const range of ranges) {
    if (range.offset === end) runs.at(-1)?.push(range)
    else runs.push([range])
    end = endOf(range)
  }
  return runs
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000

function lineStart(bytes: Buffer): number {
  const end = bytes.subarray(0, lineSearchBytes).indexOf(newline)
  if (end !== -1) return end + 1
  let cut = 0
  while (cut < 3 && isContinuation(bytes[cut])) cut++
  return cut
}

function lineEnd(bytes: Buffer): number {
  const end = bytes.lastIndexOf(newline) + 1
  if (end > 0 && bytes.length - end < lineSearchBytes) return end
  let cut = bytes.length - 1
  while (cut > bytes.length - 4 && isContinuation(bytes[cut])) cut--
  const lead = bytes[cut] ?? 0
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  return cut + length > bytes.length ? cut : bytes.length
}

/** Joins the ranges that `isIncluded` selects. A line of its own marks missing output. */
export function joinRanges<Range extends ByteRange>(
  ranges: readonly SeparatedRange<Range>[],
  isIncluded: (range: Range) => boolean = () => true,
): Buffer {
  const parts: Buffer[] = []
  let missingBytes = 0
  const mark = () => {
    const isLineOpen = (parts.at(-1)?.at(-1) ?? newline) !== newline
    if (missingBytes > 0) parts.push(Buffer.from(`${isLineOpen ? '\n' : ''}${markerLine(missingBytes)}`))
    missingBytes = 0
  }
  for (const range of ranges) {
    missingBytes += range.missingBytes
    if (!isIncluded(range)) continue
    mark()
    parts.push(range.bytes)
  }
  mark()
  return Buffer.concat(parts)
}

const markerLine = (missingBytes: number): string =>
  `[… ${missingBytes} bytes of the output of this job were dropped …]\n`

/**
 * Returns the text if its encoded size is at most `maxBytes`. Otherwise keeps whole lines at the start and the end,
 * up to about a quarter and three quarters of `maxBytes`.
 */
export function fitToResponse(text: string, maxBytes: number): string {
  let result = text
  for (let share = 0.24, size = encodedSize(result); size > maxBytes; size = encodedSize(result), share *= 0.9) {
    const quarter = Math.floor((text.length * maxBytes * share) / encodedSize(text))
    const bytes = Buffer.from(text.slice(0, quarter).toWellFormed())
    const tail = Buffer.from(text.slice(text.length - 3 * quarter).toWellFormed())
    const offset = Buffer.byteLength(text) - tail.length
    result = joinRanges(
      separateRanges([
        { offset: 0, bytes },
        { offset, bytes: tail },
      ]),
    ).toString()
  }
  return result
}

/**
 * Returns the size of a value in a function's response, which contains the body as a JSON string within JSON: a quote
 * becomes four characters, a control character seven.
 */
export const encodedSize = (value: unknown): number => Buffer.byteLength(JSON.stringify(JSON.stringify(value)))
