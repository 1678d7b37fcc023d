import type { PlatformError } from '@platform/core/error'
import { resolveRelease, type ReleaseRequest } from '@platform/core/modules/release'
import type { ModuleRelease } from '@platform/core/modules/record'
import { parseReference } from '@platform/oci/reference'
import { errorOf } from '../../support/fixtures.ts'

type ReleaseOptions = Omit<ReleaseRequest, 'reference'>

export async function resolve(text: string, options: ReleaseOptions = {}): Promise<ModuleRelease> {
  const reference = parseReference(text)
  if (reference === undefined) throw new Error(`${text} is not a reference.`)
  return resolveRelease({ reference, ...options })
}

export const resolveError = (text: string, options: ReleaseOptions = {}): Promise<PlatformError> =>
  errorOf(resolve(text, options))

export const resolveErrorCode = async (text: string, options: ReleaseOptions = {}): Promise<string> =>
  (await resolveError(text, options)).code

/** Returns the validation errors of a manifest, as `path code`. Throws for another error. */
export const manifestErrors = async (text: string, options: ReleaseOptions = {}): Promise<string[]> => {
  const { code, extra } = await resolveError(text, options)
  if (code !== 'manifest_invalid') throw new Error(`Expected manifest_invalid, but got ${code}.`)
  return (extra.details ?? []).map(({ in: part, path, code: problem }) => `${part}${path} ${problem}`)
}
