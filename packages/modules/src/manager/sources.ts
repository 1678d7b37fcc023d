import { parseReference } from '@platform/registry/reference'

/** Where modules come from: one repository, or all of a registry below a path, where that lists its own. */
export interface Source {
  registry: string
  /** `''` for all of a registry. */
  repository: string
  isWhole: boolean
}

/** The sources that `PLAT_MODULE_SOURCES` names, in its order, and what in it is none. */
export function sourcesOf(setting: string): { sources: Source[]; problems: string[] } {
  const entries = setting.split(',').map((entry) => entry.trim())
  const named = entries.filter(Boolean).map((entry) => ({ entry, source: sourceOf(entry) }))
  return {
    sources: named.flatMap(({ source }) => source ?? []),
    problems: named.filter(({ source }) => source === undefined).map(({ entry }) => `${entry} is not a source.`),
  }
}

function sourceOf(entry: string): Source | undefined {
  const isWhole = entry.endsWith('/*')
  // A registry by itself is no reference: any name below it shows whether it is one.
  const reference = parseReference(isWhole ? `${entry.slice(0, -1)}any` : entry)
  if (reference === undefined || reference.tag !== undefined || reference.digest !== undefined) return undefined
  const { registry, repository } = reference
  return { registry, repository: isWhole ? repository.replace(/\/?any$/, '') : repository, isWhole }
}

/** Whether a repository of a source's registry belongs to the source. */
export const isIn = ({ repository, isWhole }: Source, name: string): boolean =>
  isWhole ? repository === '' || name.startsWith(`${repository}/`) : name === repository
