import { sha256 } from '../id.ts'

/** The maximum number of scripts that the detail of an audit entry lists. */
const maxListed = 20

/**
 * Returns the SHA-256 and size of each distinct script, for the audit trail. Above `maxListed` scripts, lists only the
 * first ones and adds a hash of the complete list.
 */
export function describeScripts(scripts: readonly string[]): string {
  const descriptions = [...new Set(scripts)].map(
    (script) => `SHA-256 ${sha256(script)} (${Buffer.byteLength(script)} bytes)`,
  )
  const listedText = descriptions.slice(0, maxListed).join(', ')
  if (descriptions.length <= maxListed) return `${descriptions.length === 1 ? 'script' : 'scripts'} ${listedText}`
  return `scripts ${listedText}, and ${descriptions.length - maxListed} more; SHA-256 of this list of all: ${sha256(descriptions.join('\n'))}`
}
