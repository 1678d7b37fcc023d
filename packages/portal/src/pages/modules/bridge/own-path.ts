const longest = 2000

/** Allowed characters; others must be percent-encoded. The query is visible ASCII. */
const spelling = /^((?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+)+\/?)(?:\?[\u0021-\u0022\u0024-\u007e]*)?$/i

/**
 * Whether a path, with or without a query, is at or below a base for every parser. Rejects ambiguous paths: dot
 * segments, encoded slashes, double escapes.
 */
export function isOwnPath(path: unknown, bases: readonly string[]): path is string {
  if (typeof path !== 'string' || path.length > longest) return false
  const [, spelled] = spelling.exec(path) ?? []
  const plain = spelled === undefined ? undefined : decoded(spelled)
  if (spelled === undefined || plain === undefined) return false
  const segments = plain.split('/')
  const isClear =
    segments.length === spelled.split('/').length &&
    !/[%\\\p{Cc}]/u.test(plain) &&
    segments.every((segment) => segment !== '.' && segment !== '..')
  return isClear && bases.some((base) => plain === base || plain.startsWith(`${base}/`))
}

/** Undefined for escapes that are not UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
