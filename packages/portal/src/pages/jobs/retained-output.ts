// oxlint-disable no-control-regex -- control characters are what this is about
import type { components } from '../../../../contract/openapi.d.ts'

type Chunk = components['schemas']['OutputChunk']

/** A part of the output, and how long it was when the platform told of it. */
export interface Part extends Chunk {
  sizeBytes: number
}

const encoder = new TextEncoder()

/** A sequence of a terminal, or the end of a line, whose rest is still to come. */
const unfinished = /(?:\u001b(?:\[[0-?]{0,40}[ -/]{0,5}|\][^\u0007\u001b]{0,200})?|\r)$/

/** Takes in what a job writes. It is cut anywhere: what a part begins and does not end is put before the next of its source. */
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

/** What the platform keeps of an output: its beginning and its end. */
const headBytes = 256 * 1024
const tailBytes = 768 * 1024

/** Of an output that does not end, as much as the platform keeps. */
export function retain(parts: readonly Part[]): readonly Part[] {
  const tailFrom = endOf(parts.at(-1)) - tailBytes
  if (tailFrom <= headBytes) return parts
  return parts.filter((part) => part.offset < headBytes || endOf(part) > tailFrom)
}

/** Bytes that were written between two parts, and of which nothing is left. */
export const missingBetween = (before: Part | undefined, part: Part): number => Math.max(0, part.offset - endOf(before))

const endOf = (part: Part | undefined): number => (part === undefined ? 0 : part.offset + part.sizeBytes)
