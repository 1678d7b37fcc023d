import { isUtf8 } from 'node:buffer'

/** Distinguished names of directories (RFC 4514): one thing is spelled in many ways. */

/** Characters, each with its escape: bytes in hex as many as follow one another, or a backslash and what it stands before. */
const piecesOf = (text: string): string[] =>
  [...text.matchAll(/(?:\\[0-9a-f]{2})+|\\[^]|[^]/gi)].map(([piece]) => piece)

/** The parts between separators that are not escaped. */
function parts(text: string, separator: string): string[] {
  const found = ['']
  for (const piece of piecesOf(text)) {
    if (piece === separator) found.push('')
    else found[found.length - 1] += piece
  }
  return found
}

/** What a piece stands for; it is never read a second time. Bytes that are no text stay as they are spelled. */
function meant(piece: string): string {
  if (!/^\\[0-9a-f]{2}/i.test(piece)) return piece.length > 1 ? piece.slice(1) : piece
  const bytes = Buffer.from(piece.replaceAll('\\', ''), 'hex')
  return isUtf8(bytes) ? bytes.toString() : piece
}

/** An attribute and its value: escapes resolved, spaces around it dropped that are not escaped, without regard to case. */
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

/** The same text for every spelling of a distinguished name, and another one for every other name. */
export const normalDn = (dn: string): string =>
  parts(dn, ',')
    .map((rdn) => parts(rdn, '+').map(normalPart).toSorted().join('+'))
    .join(',')
