// oxlint-disable no-control-regex -- control characters are what this is about
import type { components } from '../../../../contract/openapi.d.ts'

type Chunk = components['schemas']['OutputChunk']

/** A chunk of output and its size in the platform's bytes. */
export interface Part extends Chunk {
  sizeBytes: number
}

const encoder = new TextEncoder()

/** An escape sequence or line end that continues in the next chunk. */
const unfinished = /(?:\u001b(?:\[[0-?]{0,40}[ -/]{0,5}|\][^\u0007\u001b]{0,200})?|\r)$/

/** Joins the chunks of a job. An unfinished sequence is moved to the next chunk of the same node and stream. */
export function outputReader(): (chunks: readonly Chunk[]) => Part[] {
  const begun = new Map<string, string>()
  const read = (chunk: Chunk): Part => {
    const source = `${chunk.stream} ${chunk.nodeId}`
    const text = (begun.get(source) ?? '') + chunk.data
    const rest = unfinished.exec(text)?.[0] ?? ''
    begun.set(source, rest)
    return { ...chunk, data: text.slice(0, text.length - rest.length), sizeBytes: encoder.encode(chunk.data).length }
  }
  return (chunks) => chunks.map(read)
}

/** The platform retains this much of the beginning and end of an output. */
const headBytes = 256 * 1024
const tailBytes = 768 * 1024

/** Retains as much of a long output as the platform does. */
export function retain(parts: readonly Part[]): readonly Part[] {
  const tailFrom = endOf(parts.at(-1)) - tailBytes
  if (tailFrom <= headBytes) return parts
  return parts.filter((part) => part.offset < headBytes || endOf(part) > tailFrom)
}

export const missingBetween = (before: Part | undefined, part: Part): number => Math.max(0, part.offset - endOf(before))

const endOf = (part: Part | undefined): number => (part === undefined ? 0 : part.offset + part.sizeBytes)
