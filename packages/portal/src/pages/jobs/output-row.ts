import { missingBetween, type Part } from './retained-output.ts'

/** A part of the output as it is shown. */
export interface OutputRow {
  part: Part
  /** What is missing before it. */
  lostBytes: number
}

/** The parts, each with what is missing before it; those of one node where one is chosen. */
export const rowsOf = (parts: readonly Part[], nodeId: string): OutputRow[] =>
  parts
    .map((part, index) => ({ part, lostBytes: missingBetween(parts[index - 1], part) }))
    .filter(({ part }) => nodeId === '' || part.nodeId === nodeId)

/** Says so. */
export const lostText = (bytes: number): string =>
  `\n── ${bytes.toLocaleString()} bytes of the output of all nodes were not kept ──\n`

/** The output as a file holds it. */
export const fileParts = (rows: readonly OutputRow[]): string[] =>
  rows.flatMap(({ part, lostBytes }) => (lostBytes > 0 ? [lostText(lostBytes), part.data] : [part.data]))
