// Characters that control a terminal, forge lines, reorder text or are invisible: control characters, line separators,
// bidirectional formatting characters, and invisible characters outside of emoji and scripts that need them.
const hiddenCharacters =
  '\\p{Cc}\\p{Zl}\\p{Zp}\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}'
const unsafePattern = new RegExp(`[${hiddenCharacters}]`, 'gu')
const unsafeExceptLines = new RegExp(`(?![\\n\\t])[${hiddenCharacters}]`, 'gu')
// Characters of the East Asian Width classes W (wide) and F (fullwidth). Emoji with a variation selector are wide as well.
const widePattern =
  /^(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}])/u
const zeroWidthPattern = /^[\p{Mn}\p{Me}\p{Cf}\ufe00-\ufe0f]+$/u

const escapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
/** Converts a character to a visible escape, such as `\u{1b}`. */
export const escapeCharacter = (character: string): string =>
  escapes[character] ?? `\\u{${character.codePointAt(0)?.toString(16)}}`

/** Makes control characters and line breaks visible, so that text from other sources cannot control the terminal. */
export const oneLine = (text: string): string => text.replaceAll(unsafePattern, escapeCharacter)

/** Like `oneLine`, but keeps line breaks and tabs. */
export const sanitiseText = (text: string): string => text.replaceAll(unsafeExceptLines, escapeCharacter)

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const charactersOf = (text: string): string[] => Array.from(segmenter.segment(text), ({ segment }) => segment)
function widthOfOne(character: string): number {
  if (widePattern.test(character)) return 2
  return zeroWidthPattern.test(character) ? 0 : 1
}

/** Returns the number of terminal columns that a text needs. */
export const widthOf = (text: string): number =>
  /^[\u0020-\u007e]*$/.test(text)
    ? text.length
    : charactersOf(text).reduce((total, character) => total + widthOfOne(character), 0)

/** Truncates text that is wider than `width` terminal columns, and ends it with an ellipsis. */
export const cut = (text: string, width: number): string =>
  widthOf(text) <= width ? text : width < 1 ? '' : `${fittingCharacters(charactersOf(text), width - 1).join('')}…`

/** Like `cut`, but keeps the beginning and the end. */
export function cutMiddle(text: string, width: number): string {
  if (widthOf(text) <= width || width < 3) return cut(text, width)
  const characters = charactersOf(text)
  const end = fittingCharacters(characters.toReversed(), Math.floor((width - 1) / 2))
    .toReversed()
    .join('')
  return `${fittingCharacters(characters, width - 1 - widthOf(end)).join('')}…${end}`
}

function fittingCharacters(characters: readonly string[], width: number): string[] {
  let usedWidth = 0
  const nextIndex = characters.findIndex((character) => (usedWidth += widthOfOne(character)) > width)
  return nextIndex < 0 ? [...characters] : characters.slice(0, nextIndex)
}

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** Formats a number with its noun: `1 job`, `2 jobs`. */
export const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
