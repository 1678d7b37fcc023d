import { isUtf8 } from 'node:buffer'

/** Normalises distinguished names (RFC 4514), which have many spellings. */

/** Characters and escapes: consecutive hex bytes, or a backslash with one character. */
const piecesOf = (text: string): string[] =>
  [...text.matchAll(/(?:\\[0-9a-f]{2})+|\\[^]|[^]/gi)].map(([piece]) => piece)

/** The parts between unescaped separators. */
function parts(text: string, separator: string): string[] {
  const found = ['']
  for (const piece of piecesOf(text)) {
    if (piece === separator) found.push('')
    else found[found.length - 1] += piece
  }
  return found
}

/** Decodes a piece once. Bytes that are not valid text keep their escapes. */
function meant(piece: string): string {
  if (!/^\\[0-9a-f]{2}/i.test(piece)) return piece.length > 1 ? piece.slice(1) : piece
  const bytes = Buffer.from(piece.replaceAll('\\', ''), 'hex')
  return isUtf8(bytes) ? bytes.toString() : piece
}

/** Attribute and value: escapes decoded, unescaped outer spaces dropped, lower-case. */
function normalPart(text: string): string {
  const [attribute = '', ...value] = parts(text, '=')
  const pieces = piecesOf(value.join('='))
  const from = pieces.findIndex((piece) => piece !== ' ')
  const to = pieces.findLastIndex((piece) => piece !== ' ')
  const plain = pieces
    .slice(from, to + 1)
    .map(meant)
    .join('')
    .normalize('NFC')
    .toLowerCase()
  return JSON.stringify([attribute.trim().toLowerCase(), plain])
}

/** The normal form of a distinguished name: equal exactly for equal names. */
export const normalDn = (dn: string): string =>
  parts(dn, ',')
    .map((rdn) => parts(rdn, '+').map(normalPart).toSorted().join('+'))
    .join(',')
