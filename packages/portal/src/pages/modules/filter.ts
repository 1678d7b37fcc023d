import type { Option } from '../../ui/field.tsx'
import type { ModuleEntry } from './use-modules.ts'

/** What of the modules is shown, as addresses name it. */
export const visibilityOptions: readonly Option[] = [
  { value: '', label: 'All modules' },
  { value: 'installed', label: 'Only installed' },
  { value: 'verified', label: 'Only verified' },
  { value: 'updates', label: 'Only with a newer release' },
]

const tests: Record<string, (entry: ModuleEntry) => boolean> = {
  installed: ({ installed }) => installed !== undefined,
  verified: ({ offer, installed }) => (installed ?? offer)?.verified === true,
  updates: ({ offer }) => offer?.updateAvailable === true,
}

/** Whether a module is one of those that are asked for: of a kind, and with all of some words in its names or description. */
export function matchesFilter(
  entry: ModuleEntry,
  { search = '', show = '' }: { search?: string; show?: string },
): boolean {
  const text = `${entry.id} ${entry.name} ${entry.description}`.toLowerCase()
  const words = search.toLowerCase().split(/\s+/)
  const test = Object.hasOwn(tests, show) ? tests[show] : undefined
  return words.every((word) => text.includes(word)) && (test?.(entry) ?? true)
}
