// Characters that control a terminal, forge lines or reorder text: control characters, line separators and
// bidirectional formatting characters.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const unsafeButLines = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6])/u

const names: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const visible = (character: string): string => names[character] ?? `\\u{${character.codePointAt(0)?.toString(16)}}`

/** Makes control characters and line breaks visible, so that text from other sources cannot control the terminal. */
export const oneLine = (text: string): string => text.replaceAll(unsafe, visible)

/** Like `oneLine`, but keeps line breaks and tabs. */
export const sanitiseText = (text: string): string => text.replaceAll(unsafeButLines, visible)

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const charactersOf = (text: string): string[] => Array.from(segmenter.segment(text), ({ segment }) => segment)
const widthOfOne = (character: string): number => (wide.test(character) ? 2 : 1)

/** The number of terminal columns that a text needs. */
export const widthOf = (text: string): number =>
  /^[\u0020-\u007e]*$/.test(text)
    ? text.length
    : charactersOf(text).reduce((total, character) => total + widthOfOne(character), 0)

/** Truncates text to a number of terminal columns and adds an ellipsis. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 1
  for (const character of charactersOf(text)) {
    used += widthOfOne(character)
    if (used > width) break
    kept += character
  }
  return width < 1 ? '' : `${kept}…`
}

export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** A number with its noun: `1 job`, `2 jobs`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
