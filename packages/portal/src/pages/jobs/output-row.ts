import { missingBetween, type Part } from './retained-output.ts'

export interface OutputRow {
  part: Part
  /** Bytes lost before this part. */
  lostBytes: number
}

/** The parts with the bytes lost before them, optionally of one node. */
export const rowsOf = (parts: readonly Part[], nodeId: string): OutputRow[] =>
  parts
    .map((part, index) => ({ part, lostBytes: missingBetween(parts[index - 1], part) }))
    .filter(({ part }) => nodeId === '' || part.nodeId === nodeId)

export const lostText = (bytes: number): string =>
  `\n── ${bytes.toLocaleString()} bytes of the output of all nodes were not kept ──\n`

/** The output for the download. */
export const fileParts = (rows: readonly OutputRow[]): string[] =>
  rows.flatMap(({ part, lostBytes }) => (lostBytes > 0 ? [lostText(lostBytes), part.data] : [part.data]))
