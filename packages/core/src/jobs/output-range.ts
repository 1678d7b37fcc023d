/** The first 256 KiB and the last 768 KiB of a job's output are retained, cut between characters. */

export const headBytes = 262_144
export const tailBytes = 786_432

export interface ByteRange {
  offset: number
  data: string
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000

function cutEnd(bytes: Buffer, end: number): Buffer {
  let cut = Math.max(0, Math.min(end, bytes.length))
  while (cut > 0 && cut < bytes.length && isContinuation(bytes[cut])) cut--
  return bytes.subarray(0, cut)
}

function cutStart(bytes: Buffer, start: number): Buffer {
  let cut = Math.max(0, Math.min(start, bytes.length))
  while (cut > 0 && isContinuation(bytes[cut])) cut++
  return bytes.subarray(cut)
}

/** `ranges` must be in order of their offsets; `totalBytes` includes output that was not retained. */
export function retainedOutput(ranges: readonly ByteRange[], totalBytes: number): string {
  if (totalBytes <= headBytes + tailBytes) return ranges.map(({ data }) => data).join('')
  const tailFrom = totalBytes - tailBytes
  const retained = ranges.map(({ offset, data }) => {
    const bytes = Buffer.from(data)
    const end = offset + bytes.length
    if (end <= headBytes || offset >= tailFrom) return bytes
    const head = offset < headBytes ? cutEnd(bytes, headBytes - offset) : Buffer.alloc(0)
    const tail = end > tailFrom ? cutStart(bytes, tailFrom - offset) : Buffer.alloc(0)
    return Buffer.concat([head, tail])
  })
  return Buffer.concat(retained).toString()
}

/** Cuts at the next whole character. */
export function truncateAt({ offset, data }: ByteRange, from: number): ByteRange {
  const bytes = Buffer.from(data)
  const remainder = cutStart(bytes, from - offset)
  return { offset: offset + bytes.length - remainder.length, data: remainder.toString() }
}

/** Keeps the start and the end of the text, about a quarter and three quarters of `maxBytes`. */
export function fitToResponse(text: string, maxBytes: number): string {
  let result = text
  for (let size = encodedSize(result); size > maxBytes; size = encodedSize(result)) {
    const quarter = Math.floor((result.length * maxBytes * 0.24) / size)
    result = (result.slice(0, quarter) + result.slice(result.length - 3 * quarter)).toWellFormed()
  }
  return result
}

/** A function's response contains the body as a JSON string within JSON, so a quote becomes four characters. */
const encodedSize = (text: string): number => Buffer.byteLength(JSON.stringify(JSON.stringify(text)))
