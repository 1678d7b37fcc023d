import { useNavigate, useSearch } from '@tanstack/react-router'
import { type Option, SelectField } from '../../ui/field.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import styles from './modules.module.css'
import type { ModuleEntry } from './use-modules.ts'

export function ModuleFilters() {
  const { search = '', show = '' } = useSearch({ from: '/signed-in/modules' })
  const navigate = useNavigate({ from: '/modules' })
  const change = (values: { search?: string; show?: string }) => {
    const nextValues = { search, show, ...values }
    void navigate({
      replace: true,
      resetScroll: false,
      search: ({ module, job }) => ({
        ...(module !== undefined && { module }),
        ...(job !== undefined && { job }),
        ...(nextValues.search !== '' && { search: nextValues.search }),
        ...(nextValues.show !== '' && { show: nextValues.show }),
      }),
    })
  }
  return (
    <search className={styles['filters']}>
      <SearchField
        label="Search"
        placeholder="Name or description"
        maxLength={200}
        search={search}
        onChange={(text = '') => change({ search: text })}
      />
      <SelectField
        name="show"
        label="Show"
        options={visibilityOptions}
        value={show}
        onChange={(value) => change({ show: value })}
      />
    </search>
  )
}

const visibilityOptions: readonly Option[] = [
  { value: '', label: 'All modules' },
  { value: 'installed', label: 'Only installed' },
  { value: 'verified', label: 'Only verified' },
  { value: 'updates', label: 'Updates available' },
]

const predicates: Record<string, (entry: ModuleEntry) => boolean> = {
  installed: ({ installed }) => installed !== undefined,
  verified: ({ release, installed }) => (installed ?? release)?.verified === true,
  updates: ({ release }) => release?.updateAvailable === true,
}

/** Whether a module matches the filter and contains all words of the search. */
export function matchesFilter(
  entry: ModuleEntry,
  { search = '', show = '' }: { search?: string; show?: string },
): boolean {
  const text = `${entry.id} ${entry.name} ${entry.description}`.toLowerCase()
  const words = search.toLowerCase().split(/\s+/)
  const predicate = Object.hasOwn(predicates, show) ? predicates[show] : undefined
  return words.every((word) => text.includes(word)) && (predicate?.(entry) ?? true)
}
