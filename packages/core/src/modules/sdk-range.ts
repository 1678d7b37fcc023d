import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'

/** The module SDK version of this platform; the SDK has the same constant. */
export const sdkVersion = '0.3.0'

const part = String.raw`(?:0|[1-9]\d{0,15})`
const bound = String.raw`(${part}(?:\.${part}(?:\.${part}(?:-[0-9A-Za-z.-]+)?)?)?)`
const interval = new RegExp(`^([[(])\\s*${bound}?\\s*,\\s*${bound}?\\s*([\\])])$`)

/** Converts a range to npm syntax; undefined if invalid. `[0.1.0,1.0.0)` is `>=0.1.0 <1.0.0`. */
export function sdkRange(text: string): string | undefined {
  const [, opening, from, to, closing] = interval.exec(text.trim()) ?? []
  if (opening === undefined) return text.trim() === '' ? undefined : (validRange(text) ?? undefined)
  const lower = from === undefined ? [] : [`${opening === '[' ? '>=' : '>'}${whole(from)}`]
  const upper = to === undefined ? [] : [`${closing === ']' ? '<=' : '<'}${whole(to)}`]
  return validRange([...lower, ...upper].join(' ') || '*') ?? undefined
}

/** `1.0` means 1.0.0; in npm it would be a range. */
const whole = (version: string): string =>
  version.includes('-') ? version : [...version.split('.'), '0', '0'].slice(0, 3).join('.')

/** Whether a module with this SDK range can run here. */
export function supportsSdk(text: string): boolean {
  const range = sdkRange(text)
  return range !== undefined && satisfies(sdkVersion, range)
}
