import { parseReference } from '@platform/oci/reference'
import * as z from 'zod'
import { parseList } from './list.ts'

/** A single repository, or all repositories of a registry below a path. */
export interface Source {
  registry: string
  /** Empty for a whole registry. */
  repository: string
  isWhole: boolean
}

function sourceOf(item: string): Source | undefined {
  const isWhole = item.endsWith('/*')
  // A registry alone is not a valid reference, so a sample name is appended.
  const reference = parseReference(isWhole ? `${item.slice(0, -1)}any` : item)
  if (reference === undefined || reference.tag !== undefined || reference.digest !== undefined) return undefined
  const { registry, repository } = reference
  return { registry, repository: isWhole ? repository.replace(/\/?any$/, '') : repository, isWhole }
}

export const ModuleSources = z
  .string()
  .refine(
    (text) => parseList(text).every((item) => sourceOf(item) !== undefined),
    'must be registry/repository or registry/*, separated by commas, without tags',
  )

export const parseSources = (text: string): Source[] => parseList(text).flatMap((item) => sourceOf(item) ?? [])

export const isInSource = ({ repository, isWhole }: Source, name: string): boolean =>
  isWhole ? repository === '' || name.startsWith(`${repository}/`) : name === repository
