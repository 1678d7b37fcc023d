import type { JobOutcome } from './job-group.ts'

// Spreadsheets run a cell that starts with one of these characters as a formula, also after white space. With another
// separator, a cell also starts after a semicolon, tab or line break within the text.
const formula = /(?<=^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠])|^(?=[\t\r\n])/gu

/** Quotes a cell of a CSV file (RFC 4180). Apostrophes keep spreadsheets from running parts of it as formulas. */
const cell = (text: string): string => `"${text.replaceAll(formula, "'").replaceAll('"', '""')}"`

const columns = [
  'clusterName',
  'clusterId',
  'status',
  'statusReason',
  'exitCode',
  'startedAt',
  'completedAt',
  'jobId',
  'outputSha256',
  'outputTruncated',
  'output',
] as const satisfies readonly (keyof JobOutcome)[]

const line = (cells: readonly string[]): string => `${cells.join(',')}\r\n`

const cellOf = (value: JobOutcome[keyof JobOutcome]): string =>
  typeof value === 'string' ? cell(value) : String(value ?? '')

/** Returns the results of a batch as a CSV file with a header row. Text is quoted, and cannot run as a formula. */
export const resultsCsv = (results: readonly JobOutcome[]): string =>
  line(columns) + results.map((result) => line(columns.map((column) => cellOf(result[column])))).join('')
