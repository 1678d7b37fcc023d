/** Distinguished names of directories (RFC 4514): one thing is spelled in many ways. */

/** One part of a name, as far as a character that separates parts and is not escaped. */
const parts = (text: string, separator: string): string[] => {
  const found = ['']
  for (const [piece] of text.matchAll(/\\[0-9a-f]{2}|\\[^]|[^]/gi)) {
    if (piece === separator) found.push('')
    else found[found.length - 1] += piece
  }
  return found
}

/** An attribute and its value: escapes resolved, spaces around it dropped, without regard to case. */
function normalPart(text: string): string {
  const [attribute = '', ...value] = parts(text, '=')
  const bytes = value
    .join('=')
    .trim()
    .replace(/(?:\\[0-9a-f]{2})+/gi, (hex) => Buffer.from(hex.replaceAll('\\', ''), 'hex').toString())
  const plain = bytes
    .replace(/\\([^])/g, '$1')
    .normalize('NFC')
    .toLowerCase()
  return JSON.stringify([attribute.trim().toLowerCase(), plain])
}

/** The same text for every spelling of a distinguished name, and another one for every other name. */
export const normalDn = (dn: string): string =>
  parts(dn, ',')
    .map((rdn) => parts(rdn, '+').map(normalPart).toSorted().join('+'))
    .join(',')
