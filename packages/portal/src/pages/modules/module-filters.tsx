import { useNavigate, useSearch } from '@tanstack/react-router'
import { SelectField } from '../../ui/field.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { visibilityOptions } from './filter.ts'
import styles from './modules.module.css'

/** Search and filter; both are part of the address. */
export function ModuleFilters() {
  const { search = '', show = '' } = useSearch({ from: '/signed-in/modules' })
  const navigate = useNavigate({ from: '/modules' })
  const change = (wish: { search?: string; show?: string }) => {
    const given = { search, show, ...wish }
    void navigate({
      replace: true,
      resetScroll: false,
      search: ({ module, job }) => ({
        ...(module !== undefined && { module }),
        ...(job !== undefined && { job }),
        ...(given.search !== '' && { search: given.search }),
        ...(given.show !== '' && { show: given.show }),
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
