import { parseReference } from '@platform/oci/reference'
import * as z from 'zod'

/** Where modules come from: one repository, or all of a registry below a path, where that lists its own. */
export interface Source {
  registry: string
  /** `''` for all of a registry. */
  repository: string
  isWhole: boolean
}

const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)

function sourceOf(entry: string): Source | undefined {
  const isWhole = entry.endsWith('/*')
  // A registry by itself is no reference: any name below it shows whether it is one.
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

/** The sources that a valid setting names, in its order. */
export const parseSources = (text: string): Source[] => entriesOf(text).flatMap((entry) => sourceOf(entry) ?? [])

/** Whether a repository of a source's registry belongs to the source. */
export const isInSource = ({ repository, isWhole }: Source, name: string): boolean =>
  isWhole ? repository === '' || name.startsWith(`${repository}/`) : name === repository
