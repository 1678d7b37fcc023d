// oxlint-disable no-control-regex -- this file handles control characters
import { lostText, type OutputRow, sourceOf } from './output.ts'
import { endStyle, finalLine, plainText, type Style } from './terminal-text.ts'

export interface OutputLine {
  /** Line number, from 1. Undefined for a note, and for the rest of a long line. */
  lineNumber?: number
  /** Terminal output with escape sequences. */
  text: string
  /** The style at the start of the line. */
  style: Style
  isError: boolean
  isNote: boolean
  /** Time of the first character. */
  at?: string | undefined
}

// Longer lines are split, because they would slow down the page.
const maxLineLength = 4000
const incompleteSequence = /\u001b[^\u001b]{0,40}$/

interface OpenLine {
  source: string
  nodeId: string
  at: string | undefined
  text: string
}

const noteOf = (text: string): OutputLine => ({ text, style: {}, isError: false, isNote: true })

/**
 * Returns the lines of an output in the order of their first characters. With `nameOf`, a note names the node wherever
 * it changes.
 */
export function linesOf(rows: readonly OutputRow[], nameOf?: (nodeId: string) => string): OutputLine[] {
  const styles = new Map<string, Style>()
  const lines: OutputLine[] = []
  let lineNumber = 0
  let lastNodeId: string | undefined
  for (const line of splitLines(rows)) {
    if (typeof line === 'string') {
      lines.push(noteOf(line))
      continue
    }
    const { source, nodeId, at, text } = line
    if (nameOf !== undefined && nodeId !== lastNodeId) lines.push(noteOf(`── ${nameOf(nodeId)} ──`))
    lastNodeId = nodeId
    lineNumber += 1
    let style = styles.get(source) ?? {}
    const shownText = finalLine(text)
    // The part of the line that was rewritten may have changed the style.
    style = endStyle(text.slice(0, text.lastIndexOf(shownText)), style)
    for (const [index, part] of partsOf(shownText).entries()) {
      const isError = source.startsWith('stderr')
      lines.push({ text: part, style, isError, isNote: false, at, ...(index === 0 && { lineNumber }) })
      style = endStyle(part, style)
    }
    styles.set(source, style)
  }
  return lines
}

/** Splits output into lines. Texts in the result are notes about lost output. */
function splitLines(rows: readonly OutputRow[]): (OpenLine | string)[] {
  const lines: (OpenLine | string)[] = []
  const openLines = new Map<string, OpenLine>()
  for (const { part, lostBytes } of rows) {
    if (lostBytes > 0) {
      lines.push(lostText(lostBytes))
      openLines.clear()
    }
    const source = sourceOf(part)
    const pieces = part.data.split('\n')
    for (const [index, piece] of pieces.entries()) {
      const isLast = index === pieces.length - 1
      const line = openLines.get(source)
      if (line !== undefined) line.text += piece
      else if (piece !== '' || !isLast) {
        const nextLine = { source, nodeId: part.nodeId, at: part.at, text: piece }
        lines.push(nextLine)
        openLines.set(source, nextLine)
      }
      if (!isLast) openLines.delete(source)
    }
  }
  return lines
}

function partsOf(line: string): string[] {
  const parts: string[] = []
  let rest = line
  while (rest.length > maxLineLength) {
    const part = rest.slice(0, maxLineLength).replace(/[\ud800-\udbff]$/, '')
    const cut = incompleteSequence.exec(part)?.index ?? 0
    const length = cut > 0 ? cut : part.length
    parts.push(rest.slice(0, length))
    rest = rest.slice(length)
  }
  return [...parts, rest]
}

/** Returns a pattern that finds a text literally, ignoring case, or undefined for an empty text. */
export const patternOf = (text: string): RegExp | undefined =>
  text === '' ? undefined : new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`), 'gi')

export const plainTextOf = ({ text }: OutputLine): string => plainText(text)

/** Returns the text of the lines. Long lines were split into several parts, of which only the first has a number. */
export const joinLines = (lines: readonly OutputLine[], texts: readonly string[]): string =>
  lines
    .map(
      ({ isNote, lineNumber }, index) =>
        (index > 0 && (isNote || lineNumber !== undefined) ? '\n' : '') + (texts[index] ?? ''),
    )
    .join('')
