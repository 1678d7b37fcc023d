const maxLength = 2000

/** Allowed characters; others must be percent-encoded. The query is visible ASCII. */
const pathPattern = /^((?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+)+\/?)(?:\?[\u0021-\u0022\u0024-\u007e]*)?$/i

/**
 * Whether a path, with or without a query, is at or below a base for every parser. Rejects ambiguous paths: dot
 * segments, encoded slashes, double escapes.
 */
export function isModulePath(path: unknown, basePaths: readonly string[]): path is string {
  if (typeof path !== 'string' || path.length > maxLength) return false
  const [, rawPath] = pathPattern.exec(path) ?? []
  const decodedPath = rawPath === undefined ? undefined : decoded(rawPath)
  if (rawPath === undefined || decodedPath === undefined) return false
  const segments = decodedPath.split('/')
  const isUnambiguous =
    segments.length === rawPath.split('/').length &&
    !/[%\\\p{Cc}]/u.test(decodedPath) &&
    segments.every((segment) => segment !== '.' && segment !== '..')
  return isUnambiguous && basePaths.some((base) => decodedPath === base || decodedPath.startsWith(`${base}/`))
}

/** Undefined for escapes that are not UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
