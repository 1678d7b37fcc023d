// oxlint-disable no-control-regex -- this file handles control characters

/** Colours of text that have enough contrast in both themes. Black and white are the normal colour of text. */
type Colour = 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'grey'

/** Appearance of text. Text on a background has the normal colour, so that it cannot be invisible. */
export interface Style {
  colour?: Colour | undefined
  background?: Colour | undefined
  bold?: boolean
  italic?: boolean
  underline?: boolean
  strike?: boolean
  reverse?: boolean
}

interface Segment {
  text: string
  style: Style
}

// CSI sequences, strings such as titles of windows, and other escape sequences.
const escapeSequence =
  /\u001b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-~]|\[[0-?]*[ -/]*$|$)/g

// These include characters that change the direction of the text, because they could disguise it.
const unsafeCharacters = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g

/** Converts a line of terminal output to plain text. */
export const plainText = (line: string): string => line.replaceAll(escapeSequence, '').replaceAll(unsafeCharacters, '')

/** Returns the final state of a line. A carriage return restarts the line, as in progress bars. */
export function finalLine(line: string): string {
  const content = line.replace(/\r+$/, '')
  return content.slice(content.lastIndexOf('\r') + 1)
}

/** Converts terminal output to plain text, with rewritten lines in their final state. */
export const plainLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => plainText(finalLine(line)))
    .join('\n')

/** Splits a line into parts with different styles. Only sequences that set colours and fonts have an effect. */
export function segmentsOf(line: string, start: Style): { segments: Segment[]; end: Style } {
  const segments: Segment[] = []
  let style = start
  let from = 0
  const add = (to: number) => {
    const text = line.slice(from, to).replaceAll(unsafeCharacters, '')
    if (text !== '') segments.push({ text, style })
  }
  for (const { index, 0: sequence, 1: parameters = '', 2: command } of line.matchAll(escapeSequence)) {
    add(index)
    from = index + sequence.length
    if (command === 'm') style = styleAfter(style, parameters)
  }
  add(line.length)
  return { segments, end: style }
}

/** Returns the style at the end of a line. */
export const endStyle = (line: string, start: Style): Style =>
  line.includes('\u001b') ? segmentsOf(line, start).end : start

const colours = [undefined, 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', undefined] as const

const styleChanges: Record<number, Style> = {
  1: { bold: true },
  2: { colour: 'grey' },
  3: { italic: true },
  4: { underline: true },
  7: { reverse: true },
  9: { strike: true },
  22: { bold: false },
  23: { italic: false },
  24: { underline: false },
  27: { reverse: false },
  29: { strike: false },
  39: { colour: undefined },
  49: { background: undefined },
}

function styleAfter(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/, 40).map(Number)
  let style = before
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0
    if (code === 38 || code === 48) {
      const hasIndex = codes[index + 1] === 5
      const colour = hasIndex ? indexedColour(codes[index + 2] ?? 0) : nearestColour(codes.slice(index + 2, index + 5))
      style = { ...style, [code === 38 ? 'colour' : 'background']: colour }
      index += hasIndex ? 2 : 4
    } else style = code === 0 ? {} : { ...style, ...(styleChanges[code] ?? basicColour(code)) }
  }
  return style
}

function basicColour(code: number): Style {
  const [tens, index] = [Math.floor(code / 10), code % 10]
  if (index > 7) return {}
  if (tens === 3 || tens === 9) return { colour: indexedColour(tens === 9 ? index + 8 : index) }
  if (tens === 4 || tens === 10) return { background: indexedColour(tens === 10 ? index + 8 : index) }
  return {}
}

// 16 basic colours, a cube with 6 levels of red, green and blue, and shades of grey.
function indexedColour(index: number): Colour | undefined {
  if (index === 8) return 'grey'
  if (index < 16) return colours[index % 8]
  if (index > 231) return index < 244 ? 'grey' : undefined
  const cube = index - 16
  return nearestColour([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => level * 51))
}

function nearestColour([red = 0, green = 0, blue = 0]: readonly number[]): Colour | undefined {
  const [low, high] = [Math.min(red, green, blue), Math.max(red, green, blue)]
  if (high - low < 48) return high > 80 && high < 160 ? 'grey' : undefined
  const middle = (low + high) / 2
  return colours[Number(red > middle) + 2 * Number(green > middle) + 4 * Number(blue > middle)]
}

/** Maximum number of highlighted matches of a line, because each is an element. */
const maxMatches = 200

/** Splits segments at the first matches of a pattern with the flag `g`. */
export function withMatches(segments: readonly Segment[], pattern: RegExp): (Segment & { isMatch: boolean })[] {
  const text = segments.map((segment) => segment.text).join('')
  const matches = [...text.matchAll(pattern)].slice(0, maxMatches)
  const ranges = matches.map(({ 0: match, index }) => [index, index + match.length] as const)
  let from = 0
  return segments.flatMap((segment) => {
    const [start, end] = [from, from + segment.text.length]
    from = end
    const bounds = ranges.flat().filter((bound) => start < bound && bound < end)
    return [start, ...bounds].map((segmentStart, index) => ({
      text: text.slice(segmentStart, bounds[index] ?? end),
      style: segment.style,
      isMatch: ranges.some(([first, last]) => first <= segmentStart && segmentStart < last),
    }))
  })
}
