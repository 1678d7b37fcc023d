import { shouldUseColor } from './color.ts'
import { cellOf, type Column, tableOf } from './table.ts'
import { TerminalText } from './terminal-text.ts'
import { pad, sanitiseText, widthOf } from './text.ts'
import { say, terminalWidth, write, writeJson } from './write.ts'

/** Options of every command that prints data. `wide` is an option of lists. */
export interface PrintOptions {
  json?: true
  wide?: true
}

export interface List<Row> {
  items: Row[]
  totalCount?: number
}

/**
 * Prints a list as a table, or as JSON. In a terminal, times are ages and the table fits the width unless `--wide` is
 * set. Otherwise, for scripts, the table has all columns, whole values and times.
 */
export async function showList<Row>(
  { json, wide }: PrintOptions,
  list: List<Row>,
  columns: readonly Column<Row>[],
): Promise<void> {
  if (json) return writeJson(list)
  const { items, totalCount = items.length } = list
  const isBrief = process.stdout.isTTY && !wide
  const layout = {
    width: isBrief ? terminalWidth() : Infinity,
    isBrief,
    hasRelativeTimes: process.stdout.isTTY,
    hasColor: shouldUseColor(),
  }
  if (items.length > 0) await write(tableOf(columns, items, layout))
  if (totalCount === 0) say('No items.')
  else if (items.length < totalCount) say(`Showing ${items.length} of ${totalCount}. Use --all to show all.`)
}

/** Prints all fields of a resource, as JSON or one line per field. */
export async function showOne({ json }: PrintOptions, value: object): Promise<void> {
  await (json ? writeJson(value) : write(formatFields(value)))
}

const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isRows = (value: unknown): value is object[] =>
  Array.isArray(value) && value.length > 0 && value.every(isPlainObject)

function flatten(value: object, prefix = ''): [name: string, value: unknown][] {
  return Object.entries(value).flatMap(([name, field]): [string, unknown][] =>
    isPlainObject(field) ? flatten(field, `${prefix}${name}.`) : [[`${prefix}${name}`, field]],
  )
}

const isMultilineText = (value: unknown): value is string => typeof value === 'string' && value.includes('\n')

// Multi-line texts and nested lists do not fit in a line, so they follow below the other fields.
function formatFields(value: object): string {
  const fields = flatten(value)
  const singleLineFields = fields.filter(([, field]) => !isRows(field) && !isMultilineText(field))
  const width = Math.max(0, ...singleLineFields.map(([name]) => widthOf(name)))
  const lines = singleLineFields.map(([name, field]) => `${pad(name, width)}  ${cellOf(field)}\n`)
  const nestedParts = fields.flatMap(([name, field]) => {
    if (isMultilineText(field)) return [`\n${name}:\n${terminalSafe(field)}${field.endsWith('\n') ? '' : '\n'}`]
    return isRows(field) ? [`\n${name}:\n${tableOfObjects(field)}`] : []
  })
  return [...lines, ...nestedParts].join('')
}

// Makes a text with several lines, such as the output of a job, safe for a terminal.
function terminalSafe(text: string): string {
  if (!process.stdout.isTTY) return sanitiseText(text)
  const terminalText = new TerminalText({ hasColor: shouldUseColor() })
  return terminalText.next(Buffer.from(text)) + terminalText.end()
}

function tableOfObjects(rows: readonly object[]): string {
  const flatRows = rows.map((row) => new Map(flatten(row)))
  const titles = [...new Set(flatRows.flatMap((row) => [...row.keys()]))]
  const columns = titles.map((title): Column<Map<string, unknown>> => ({
    title,
    cellValue: (row) => row.get(title),
    ...(/(^|\.)status$/.test(title) ? { format: 'state' } : { isFlexible: true }),
  }))
  return tableOf(columns, flatRows, { width: terminalWidth(), hasColor: shouldUseColor() })
}
