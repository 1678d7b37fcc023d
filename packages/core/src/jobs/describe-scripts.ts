import { sha256 } from '../id.ts'

/** Fits into the detail of an audit entry. */
const maxListed = 20

/**
 * Returns the SHA-256 and size of each distinct script, for the audit trail. If there are more than twenty, lists
 * twenty and adds one hash of the complete list.
 */
export function describeScripts(scripts: readonly string[]): string {
  const different = [...new Set(scripts)].map(
    (script) => `SHA-256 ${sha256(script)} (${Buffer.byteLength(script)} bytes)`,
  )
  const listed = different.slice(0, maxListed).join(', ')
  if (different.length <= maxListed) return `${different.length === 1 ? 'script' : 'scripts'} ${listed}`
  return `scripts ${listed}, and ${different.length - maxListed} more; SHA-256 of this list of all: ${sha256(different.join('\n'))}`
}
