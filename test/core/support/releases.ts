import { PlatformError } from '@platform/core/error'
import { resolveRelease, type ReleaseRequest } from '@platform/core/modules/release'
import { type ModuleRelease } from '@platform/core/modules/record'
import { parseReference } from '@platform/oci/reference'

type Wanted = Omit<ReleaseRequest, 'reference'>

/** The release that a reference stands for. */
export function resolve(text: string, more: Wanted = {}): Promise<ModuleRelease> {
  const reference = parseReference(text)
  if (reference === undefined) throw new Error(`${text} is no reference.`)
  return resolveRelease({ reference, ...more })
}

/** The fault that it is refused with. */
export async function refusal(text: string, more: Wanted = {}): Promise<PlatformError> {
  const outcome = await resolve(text, more).catch((error: unknown) => error)
  if (outcome instanceof PlatformError) return outcome
  throw new Error('It was not refused.', { cause: outcome })
}

export const codeOf = async (text: string, more: Wanted = {}): Promise<string> => (await refusal(text, more)).code

/** Where a manifest is refused, and why: `path code`. */
export const detailsOf = async (text: string, more: Wanted = {}): Promise<string[]> => {
  const { code, extra } = await refusal(text, more)
  if (code !== 'manifest_invalid') throw new Error(`It was refused with ${code}.`)
  return (extra.details ?? []).map(({ in: where, path, code: problem }) => `${where}${path} ${problem}`)
}
