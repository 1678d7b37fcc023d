import { parseReference } from '@platform/registry/reference'
import * as z from 'zod'

const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)

/** A repository, or all that a registry lists. */
function isSource(entry: string): boolean {
  const reference = parseReference(entry.replace(/\/\*$/, '/all'))
  return reference !== undefined && reference.tag === undefined && reference.digest === undefined
}

/** The setting `PLAT_MODULE_SOURCES`. */
export const Sources = z
  .string()
  .refine(
    (text) => entriesOf(text).every(isSource),
    'must be registry/repository or registry/*, separated by commas, without tags',
  )
