/** An authentication challenge (RFC 9110, section 11.6.1). The scheme and the parameter names are in lower case. */
export interface Challenge {
  scheme: string
  parameters: Readonly<Record<string, string>>
}

const word = /([\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*)))?/g
const longestChallenge = 4096

/** Parses the challenges of a `WWW-Authenticate` header. A word without a value starts a challenge. */
export function challengesOf(header: string): Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = []
  for (const [, name = '', quoted, plain] of header.slice(0, longestChallenge).matchAll(word)) {
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: {} })
    else Object.assign(challenges.at(-1)?.parameters ?? {}, { [name.toLowerCase()]: value })
  }
  return challenges
}
