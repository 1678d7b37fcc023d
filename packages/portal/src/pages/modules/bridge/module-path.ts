const maxLength = 2000

// Other characters of the path must be percent-encoded. The query consists of visible ASCII characters except `#`.
const pathPattern = /^((?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})*)+)(?:\?[\u0021-\u0022\u0024-\u007e]*)?$/i

/**
 * Whether a path in its sent form, with or without a query, is at or below a base path. As on the platform, dot
 * segments, NUL and backslashes are rejected, encoded or not.
 */
export function isModulePath(path: unknown, basePaths: readonly string[]): path is string {
  if (typeof path !== 'string' || path.length > maxLength) return false
  const [, rawPath] = pathPattern.exec(path) ?? []
  const decodedPath = rawPath === undefined ? undefined : decode(rawPath)
  if (rawPath === undefined || decodedPath === undefined) return false
  const isTraversal = decodedPath.split('/').some((segment) => segment === '.' || segment === '..')
  if (isTraversal || /[\\\0]/.test(decodedPath)) return false
  return basePaths.some((base) => rawPath === base || rawPath.startsWith(`${base}/`))
}

// Escapes that are not UTF-8 make the path invalid.
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
