import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'

/** The version of the module SDK that this platform speaks; the SDK itself holds the same. */
export const sdkVersion = '0.3.0'

const part = String.raw`(?:0|[1-9]\d{0,15})`
const bound = String.raw`(${part}(?:\.${part}(?:\.${part}(?:-[0-9A-Za-z.-]+)?)?)?)`
const interval = new RegExp(`^([[(])\\s*${bound}?\\s*,\\s*${bound}?\\s*([\\])])$`)

/** A range in the syntax of npm; undefined where the text is none. `[0.1.0,1.0.0)` is `>=0.1.0 <1.0.0` (D47). */
export function sdkRange(text: string): string | undefined {
  const [, opening, from, to, closing] = interval.exec(text.trim()) ?? []
  if (opening === undefined) return text.trim() === '' ? undefined : (validRange(text) ?? undefined)
  const lower = from === undefined ? [] : [`${opening === '[' ? '>=' : '>'}${whole(from)}`]
  const upper = to === undefined ? [] : [`${closing === ']' ? '<=' : '<'}${whole(to)}`]
  return validRange([...lower, ...upper].join(' ') || '*') ?? undefined
}

/** Here `1.0` is 1.0.0; to npm it would be all that begins so. */
const whole = (version: string): string =>
  version.includes('-') ? version : [...version.split('.'), '0', '0'].slice(0, 3).join('.')

/** Whether a module that asks for this range runs here. */
export function supportsSdk(text: string): boolean {
  const range = sdkRange(text)
  return range !== undefined && satisfies(sdkVersion, range)
}
