import { type ImageReference, parseReference } from '@platform/oci/reference'
import * as z from 'zod'

export type ReleaseRepository = Pick<ImageReference, 'registry' | 'repository'>

export function parseReleaseRepository(text: string): ReleaseRepository | undefined {
  const reference = parseReference(text)
  return reference?.tag === undefined && reference?.digest === undefined ? reference : undefined
}

export const ReleaseSource = z
  .string()
  .refine(
    (text) => text === '' || parseReleaseRepository(text) !== undefined,
    'must be registry/repository, without a tag',
  )
