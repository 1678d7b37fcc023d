import type { Option } from '../../ui/field.tsx'
import type { ModuleEntry } from './use-modules.ts'

/** Values of the `show` parameter. */
export const visibilityOptions: readonly Option[] = [
  { value: '', label: 'All modules' },
  { value: 'installed', label: 'Only installed' },
  { value: 'verified', label: 'Only verified' },
  { value: 'updates', label: 'Updates available' },
]

const tests: Record<string, (entry: ModuleEntry) => boolean> = {
  installed: ({ installed }) => installed !== undefined,
  verified: ({ offer, installed }) => (installed ?? offer)?.verified === true,
  updates: ({ offer }) => offer?.updateAvailable === true,
}

/** Whether a module matches the filter and contains all words of the search. */
export function matchesFilter(
  entry: ModuleEntry,
  { search = '', show = '' }: { search?: string; show?: string },
): boolean {
  const text = `${entry.id} ${entry.name} ${entry.description}`.toLowerCase()
  const words = search.toLowerCase().split(/\s+/)
  const test = Object.hasOwn(tests, show) ? tests[show] : undefined
  return words.every((word) => text.includes(word)) && (test?.(entry) ?? true)
}
