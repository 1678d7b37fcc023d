import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'

/** Must equal `sdkVersion` in `packages/sdk`. */
export const sdkVersion = '0.3.0'

const numberPattern = String.raw`(?:0|[1-9]\d{0,15})`
const versionPattern = String.raw`(${numberPattern}(?:\.${numberPattern}(?:\.${numberPattern}(?:-[0-9A-Za-z.-]+)?)?)?)`
const intervalPattern = new RegExp(`^([[(])\\s*${versionPattern}?\\s*,\\s*${versionPattern}?\\s*([\\])])$`)

/** Converts a range to npm syntax, or returns undefined if it is invalid. `[0.1.0,1.0.0)` becomes `>=0.1.0 <1.0.0`. */
export function toNpmRange(text: string): string | undefined {
  const [, opening, from, to, closing] = intervalPattern.exec(text.trim()) ?? []
  if (opening === undefined) return text.trim() === '' ? undefined : (validRange(text) ?? undefined)
  const lowerBounds = from === undefined ? [] : [`${opening === '[' ? '>=' : '>'}${fullVersion(from)}`]
  const upperBounds = to === undefined ? [] : [`${closing === ']' ? '<=' : '<'}${fullVersion(to)}`]
  return validRange([...lowerBounds, ...upperBounds].join(' ') || '*') ?? undefined
}

/** Converts `1.0` to `1.0.0`; npm would treat it as a range. */
const fullVersion = (version: string): string =>
  version.includes('-') ? version : [...version.split('.'), '0', '0'].slice(0, 3).join('.')

export function supportsSdk(text: string): boolean {
  const range = toNpmRange(text)
  return range !== undefined && satisfies(sdkVersion, range)
}
