import { parseReference } from '@platform/oci/reference'
import * as z from 'zod'
import { entriesOf } from './list.ts'

/** A single repository, or all repositories of a registry below a path. */
export interface Source {
  registry: string
  /** Empty for a whole registry. */
  repository: string
  isWhole: boolean
}

function sourceOf(entry: string): Source | undefined {
  const isWhole = entry.endsWith('/*')
  // A registry alone is not a valid reference, so a sample name is appended.
  const reference = parseReference(isWhole ? `${entry.slice(0, -1)}any` : entry)
  if (reference === undefined || reference.tag !== undefined || reference.digest !== undefined) return undefined
  const { registry, repository } = reference
  return { registry, repository: isWhole ? repository.replace(/\/?any$/, '') : repository, isWhole }
}

export const ModuleSources = z
  .string()
  .refine(
    (text) => entriesOf(text).every((entry) => sourceOf(entry) !== undefined),
    'must be registry/repository or registry/*, separated by commas, without tags',
  )

export const parseSources = (text: string): Source[] => entriesOf(text).flatMap((entry) => sourceOf(entry) ?? [])

export const isInSource = ({ repository, isWhole }: Source, name: string): boolean =>
  isWhole ? repository === '' || name.startsWith(`${repository}/`) : name === repository
