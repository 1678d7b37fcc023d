import { type ImageReference, parseReference } from '@platform/oci/reference'
import * as z from 'zod'

/** A repository of a registry. */
export type ReleaseRepository = Pick<ImageReference, 'registry' | 'repository'>

/** The repository that a text names: `registry/repository`, without a tag; undefined where it is none. */
export function parseReleaseRepository(text: string): ReleaseRepository | undefined {
  const reference = parseReference(text)
  return reference?.tag === undefined && reference?.digest === undefined ? reference : undefined
}

/** The setting `PLAT_RELEASE_SOURCE`. */
export const ReleaseSource = z
  .string()
  .refine(
    (text) => text === '' || parseReleaseRepository(text) !== undefined,
    'must be registry/repository, without a tag',
  )
