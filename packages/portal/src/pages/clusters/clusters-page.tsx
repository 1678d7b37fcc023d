import { useNavigate, useSearch } from '@tanstack/react-router'
import { CircleFadingArrowUp, KeyRound, MapPin, Plus } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission, useSummary } from '../../api/account.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import {
  type ClusterFilter,
  type ClusterSort,
  clusterStatuses,
  clusterTypes,
  maxSearchLength,
} from './cluster-filter.ts'
import { ClusterList } from './cluster-list.tsx'
import { typeNames } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { SavedFilters } from './saved-filters.tsx'
import { SelectorFilter } from './selector-field.tsx'
import { SitesDialog } from './sites.tsx'

export function ClustersPage() {
  const { sort, ...filter } = useSearch({ from: '/signed-in/clusters' })
  const navigate = useNavigate({ from: '/clusters' })
  const change = (next: ClusterFilter) => void navigate({ search: withoutUndefined({ ...next, sort }), replace: true })
  const changeSort = (nextSort: ClusterSort | undefined) =>
    void navigate({ search: withoutUndefined({ ...filter, sort: nextSort }) })
  return (
    <Page title="Clusters" actions={<Actions />}>
      <ClusterFilters filter={filter} onChange={change} />
      <ClusterList filter={filter} sort={sort} onSort={changeSort} onClear={() => change({})} />
    </Page>
  )
}

function Actions() {
  const mayWrite = useHasPermission('clusters:write')
  const mayUpdate = useHasPermission('clusters:admin')
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button icon={MapPin} onClick={() => setIsOpen(true)}>
        Sites
      </Button>
      {mayWrite && (
        <ButtonLink to="/clusters/enrollment-keys" icon={KeyRound}>
          Enrollment keys
        </ButtonLink>
      )}
      {mayUpdate && (
        <ButtonLink to="/clusters/relay-updates" icon={CircleFadingArrowUp}>
          Relay updates
        </ButtonLink>
      )}
      {mayWrite && (
        <ButtonLink to="/clusters/register" variant="primary" icon={Plus}>
          Register cluster
        </ButtonLink>
      )}
      <SitesDialog isOpen={isOpen} onClose={() => setIsOpen(false)} />
    </>
  )
}

interface FiltersProps {
  filter: ClusterFilter
  onChange: (filter: ClusterFilter) => void
}

export function ClusterFilters({ filter, onChange }: FiltersProps) {
  const changeFilter = (change: { [Name in keyof ClusterFilter]: ClusterFilter[Name] | undefined }) =>
    onChange(withoutUndefined({ ...filter, ...change }))
  return (
    <div role="search" aria-label="Clusters" className={styles['filters']}>
      <StatusField filter={filter} onChange={(status) => changeFilter({ status })} />
      <SelectField
        name="type"
        label="Type"
        value={filter.type ?? ''}
        options={[
          { value: '', label: 'All' },
          ...clusterTypes.map((type) => ({ value: type, label: typeNames[type] })),
        ]}
        onChange={(value) => changeFilter({ type: oneOfIn({ value }, 'value', clusterTypes) })}
      />
      <SearchField
        label="Name"
        placeholder="Name contains"
        maxLength={maxSearchLength}
        search={filter.search}
        onChange={(search) => changeFilter({ search })}
      />
      <SavedFilters filter={filter} onChange={onChange} />
      <div className={styles['selector']}>
        <SelectorFilter selector={filter.selector} onChange={(selector) => changeFilter({ selector })} />
      </div>
    </div>
  )
}

interface StatusProps {
  filter: ClusterFilter
  onChange: (status: ClusterFilter['status']) => void
}

// The summary counts all clusters, so the counts would be wrong with other filters.
function StatusField({ filter: { status, ...others }, onChange }: StatusProps) {
  const counts = useSummary().data?.clusters
  const isCounted = Object.keys(others).length === 0 && counts !== undefined
  const labelWithCount = (name: string, count: number | undefined) =>
    isCounted ? `${name} (${(count ?? 0).toLocaleString('en')})` : name
  return (
    <SelectField
      name="status"
      label="Status"
      value={status ?? ''}
      options={[
        { value: '', label: labelWithCount('All', counts?.total) },
        ...clusterStatuses.map((each) => ({ value: each, label: labelWithCount(each, counts?.byStatus[each]) })),
      ]}
      onChange={(value) => onChange(oneOfIn({ value }, 'value', clusterStatuses))}
    />
  )
}
