import { isUtf8 } from 'node:buffer'

/** Normalises distinguished names (RFC 4514), because directories spell equal names differently. */

/** A token is one character, an escaped character, or a run of escaped hex bytes. */
const tokensOf = (text: string): string[] =>
  [...text.matchAll(/(?:\\[0-9a-f]{2})+|\\[^]|[^]/gi)].map(([token]) => token)

function splitUnescaped(text: string, separator: string): string[] {
  const parts = ['']
  for (const token of tokensOf(text)) {
    if (token === separator) parts.push('')
    else parts[parts.length - 1] += token
  }
  return parts
}

/** Decodes the escapes of a token. Bytes that are not valid UTF-8 keep their escapes. */
function decode(token: string): string {
  if (!/^\\[0-9a-f]{2}/i.test(token)) return token.length > 1 ? token.slice(1) : token
  const bytes = Buffer.from(token.replaceAll('\\', ''), 'hex')
  return isUtf8(bytes) ? bytes.toString() : token
}

function normaliseAttribute(text: string): string {
  const [attribute = '', ...value] = splitUnescaped(text, '=')
  const tokens = tokensOf(value.join('='))
  const from = tokens.findIndex((token) => token !== ' ')
  const to = tokens.findLastIndex((token) => token !== ' ')
  const plainValue = tokens
    .slice(from, to + 1)
    .map(decode)
    .join('')
    .normalize('NFC')
    .toLowerCase()
  return JSON.stringify([attribute.trim().toLowerCase(), plainValue])
}

export const normaliseDn = (dn: string): string =>
  splitUnescaped(dn, ',')
    .map((rdn) => splitUnescaped(rdn, '+').map(normaliseAttribute).toSorted().join('+'))
    .join(',')
