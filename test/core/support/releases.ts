import { PlatformError } from '@platform/core/error'
import { resolveRelease, type ReleaseRequest } from '@platform/core/modules/release'
import { type ModuleRelease } from '@platform/core/modules/record'
import { parseReference } from '@platform/oci/reference'

type ReleaseOptions = Omit<ReleaseRequest, 'reference'>

/** The release that a reference stands for. */
export function resolve(text: string, more: ReleaseOptions = {}): Promise<ModuleRelease> {
  const reference = parseReference(text)
  if (reference === undefined) throw new Error(`${text} is no reference.`)
  return resolveRelease({ reference, ...more })
}

/** The fault that it is refused with. */
export async function resolveError(text: string, more: ReleaseOptions = {}): Promise<PlatformError> {
  const outcome = await resolve(text, more).catch((error: unknown) => error)
  if (outcome instanceof PlatformError) return outcome
  throw new Error('It was not refused.', { cause: outcome })
}

export const resolveErrorCode = async (text: string, more: ReleaseOptions = {}): Promise<string> =>
  (await resolveError(text, more)).code

/** Where a manifest is refused, and why: `path code`. */
export const manifestErrors = async (text: string, more: ReleaseOptions = {}): Promise<string[]> => {
  const { code, extra } = await resolveError(text, more)
  if (code !== 'manifest_invalid') throw new Error(`It was refused with ${code}.`)
  return (extra.details ?? []).map(({ in: where, path, code: problem }) => `${where}${path} ${problem}`)
}
