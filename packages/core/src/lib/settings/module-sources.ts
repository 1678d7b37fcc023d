import { parseReference } from '@platform/oci/reference'
import * as z from 'zod'
import { entriesOf } from './list.ts'

/** A source of modules: one repository, or all repositories of a registry below a path. */
export interface Source {
  registry: string
  /** `''` for a whole registry. */
  repository: string
  isWhole: boolean
}

function sourceOf(entry: string): Source | undefined {
  const isWhole = entry.endsWith('/*')
  // A registry alone is not a reference, so a sample name is appended.
  const reference = parseReference(isWhole ? `${entry.slice(0, -1)}any` : entry)
  if (reference === undefined || reference.tag !== undefined || reference.digest !== undefined) return undefined
  const { registry, repository } = reference
  return { registry, repository: isWhole ? repository.replace(/\/?any$/, '') : repository, isWhole }
}

/** The setting `PLAT_MODULE_SOURCES`. */
export const ModuleSources = z
  .string()
  .refine(
    (text) => entriesOf(text).every((entry) => sourceOf(entry) !== undefined),
    'must be registry/repository or registry/*, separated by commas, without tags',
  )

/** The sources of a valid setting, in order. */
export const parseSources = (text: string): Source[] => entriesOf(text).flatMap((entry) => sourceOf(entry) ?? [])

/** Whether a repository of the source's registry belongs to the source. */
export const isInSource = ({ repository, isWhole }: Source, name: string): boolean =>
  isWhole ? repository === '' || name.startsWith(`${repository}/`) : name === repository
