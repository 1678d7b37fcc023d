import type { Readable } from 'node:stream'
import { iso, now } from '@platform/core/clock'

/** Reads the output of an instance as lines. All output is read, and lines over the limits are dropped. */

const maxLineBytes = 8192
const maxLines = 200
const maxBytes = 65_536
const windowMs = 1000

/** Limits of the last lines, which explain why an instance ended. */
const maxTailLines = 10
const maxTailCharacters = 2000

const droppedMessage = 'Output limit exceeded; lines were dropped'

const lineFeed = 10

export interface OutputTail {
  tail: () => string
}

export function captureOutput(streams: readonly Readable[], onLine: (line: string) => void): OutputTail {
  const lastLines: string[] = []
  const append = (line: string) => {
    lastLines.push(line)
    if (lastLines.length > maxTailLines) lastLines.shift()
    onLine(line)
  }
  const onDropped = (droppedCount: number) =>
    onLine(JSON.stringify({ time: iso(now()), level: 'warn', message: droppedMessage, dropped: droppedCount }))
  const limiter = new RateLimiter(append, onDropped)
  for (const stream of streams) splitLines(stream, limiter)
  return { tail: () => lastLines.join('\n').slice(-maxTailCharacters) }
}

/** Passes a limited number of lines and bytes per second, then reports the number of dropped lines. */
class RateLimiter {
  readonly #passLine: (line: string) => void
  readonly #onDropped: (droppedCount: number) => void
  #lineCount = 0
  #byteCount = 0
  #droppedCount = 0

  constructor(passLine: (line: string) => void, onDropped: (droppedCount: number) => void) {
    this.#passLine = passLine
    this.#onDropped = onDropped
  }

  get isExceeded(): boolean {
    return this.#lineCount >= maxLines || this.#byteCount >= maxBytes
  }

  drop(): void {
    this.#droppedCount += 1
  }

  accept(line: string): void {
    if (this.#lineCount === 0) setTimeout(() => this.#renew(), windowMs).unref()
    this.#lineCount += 1
    this.#byteCount += Buffer.byteLength(line)
    this.#passLine(line)
  }

  #renew(): void {
    if (this.#droppedCount > 0) this.#onDropped(this.#droppedCount)
    this.#lineCount = this.#byteCount = this.#droppedCount = 0
  }
}

/** Splits a stream into lines. Copies nothing while the limit is exceeded, so that a flood costs little. */
function splitLines(stream: Readable, limiter: RateLimiter): void {
  let parts: Buffer[] = []
  let bytes = 0
  let isDropped = false
  const add = (chunk: Buffer, start: number, end: number) => {
    isDropped ||= limiter.isExceeded
    // The part is copied, because a view would retain the whole chunk.
    if (!isDropped && bytes <= maxLineBytes)
      parts.push(Buffer.from(chunk.subarray(start, Math.min(end, start + maxLineBytes + 1))))
    bytes += end - start
  }
  const finish = () => {
    if (bytes === 0) return
    if (isDropped) limiter.drop()
    else limiter.accept(textOf(parts))
    parts = []
    bytes = 0
    isDropped = false
  }
  stream.on('data', (chunk: Buffer) => {
    let start = 0
    for (let index = 0; index < chunk.length; index++) {
      if (chunk[index] !== lineFeed) continue
      add(chunk, start, index)
      finish()
      start = index + 1
    }
    if (start < chunk.length) add(chunk, start, chunk.length)
  })
  stream.on('end', finish)
  // The stream ends with its process, whose exit is reported separately.
  stream.on('error', finish)
}

function textOf(parts: readonly Buffer[]): string {
  const line = Buffer.concat(parts)
  return line.length > maxLineBytes ? `${line.subarray(0, maxLineBytes).toString()}…` : line.toString()
}
