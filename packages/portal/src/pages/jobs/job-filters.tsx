import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { isoTime, localTime, maxLocalTime } from '../../lib/local-time.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { Button } from '../../ui/button.tsx'
import { CompletionField } from '../../ui/completion-field.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { useDebounced } from '../../ui/hooks.ts'
import { SearchField } from '../../ui/search-field.tsx'
import { maxSearchLength } from '../clusters/cluster-filter.ts'
import { useClusterName } from '../clusters/cluster-queries.ts'
import { usePersonCompletions } from '../users/use-user-name.ts'
import styles from './jobs.module.css'
import { type JobStatus, jobStatuses } from './status.ts'

/** The filter of the list in the URL. Times are ISO 8601; `createdBy` is a user name or an id. */
export interface JobFilter {
  status?: JobStatus
  clusterId?: string
  batchId?: string
  createdBy?: string
  name?: string
  since?: string
  until?: string
}

interface JobFiltersProps {
  filter: JobFilter
  onChange: (filter: JobFilter) => void
}

const statuses = [{ value: '', label: 'All' }, ...jobStatuses.map((status) => ({ value: status, label: status }))]

export function JobFilters({ filter, onChange }: JobFiltersProps) {
  const change = (changes: { [Name in keyof JobFilter]: JobFilter[Name] | undefined }) =>
    onChange(withoutUndefined({ ...filter, ...changes }))
  return (
    <div role="search" aria-label="Jobs" className={styles['filters']}>
      <SelectField
        name="status"
        label="Status"
        value={filter.status ?? ''}
        options={statuses}
        onChange={(value) => change({ status: oneOfIn({ value }, 'value', jobStatuses) })}
      />
      <SearchField
        name="name"
        label="Title"
        placeholder="Title contains"
        maxLength={100}
        search={filter.name}
        onChange={(name) => change({ name })}
      />
      <ClusterField clusterId={filter.clusterId} onChange={(clusterId) => change({ clusterId })} />
      <PersonField person={filter.createdBy} onChange={(createdBy) => change({ createdBy })} />
      <TimeField name="since" label="From" time={filter.since} onChange={(since) => change({ since })} />
      <TimeField name="until" label="Before" time={filter.until} onChange={(until) => change({ until })} />
      {Object.keys(filter).length > 0 && (
        <Button variant="quiet" icon={X} onClick={() => onChange({})}>
          Clear filters
        </Button>
      )}
    </div>
  )
}

interface ValueProps {
  onChange: (value: string | undefined) => void
}

const pageSize = 10

function ClusterField({ clusterId, onChange }: ValueProps & { clusterId: string | undefined }) {
  const name = useClusterName(clusterId)
  const [text, setText] = useState<string>()
  const search = useDebounced(text?.trim().slice(0, maxSearchLength) ?? '')
  const { data } = useQuery({
    queryKey: ['clusters', 'search', search, pageSize],
    enabled: search !== '',
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/clusters', { params: { query: { search, pageSize } }, signal })),
  })
  const term = text?.trim().toLowerCase() ?? ''
  // Results of an earlier text must not be chosen.
  const foundClusters = (term === '' ? [] : (data?.items ?? [])).filter(({ name: each }) =>
    each.toLowerCase().includes(term),
  )
  const apply = (id: string | undefined) => {
    setText(undefined)
    onChange(id)
  }
  return (
    <CompletionField
      name="cluster"
      label="Cluster"
      placeholder="All"
      maxLength={maxSearchLength}
      value={text ?? name ?? clusterId ?? ''}
      onChange={(nextText) => (nextText === '' ? apply(undefined) : setText(nextText))}
      onChoose={(chosenName) => apply(foundClusters.find((cluster) => cluster.name === chosenName)?.id)}
      onEnter={() => foundClusters[0] !== undefined && apply(foundClusters[0].id)}
      onBlur={() => setText(undefined)}
      completions={foundClusters.map((cluster) => ({ text: cluster.name, label: cluster.name, hint: cluster.status }))}
    />
  )
}

function PersonField({ person = '', onChange }: ValueProps & { person: string | undefined }) {
  const [text, setText] = useState<string>()
  const shownText = text ?? person
  const { completions } = usePersonCompletions(shownText)
  const apply = (nextPerson = '') => {
    setText(undefined)
    if (nextPerson.trim() !== person) onChange(nextPerson.trim() || undefined)
  }
  return (
    <CompletionField
      name="createdBy"
      label="Submitted by"
      placeholder="Anyone"
      maxLength={100}
      value={shownText}
      onChange={(nextText) => (nextText === '' ? apply() : setText(nextText))}
      onChoose={apply}
      onEnter={() => apply(text ?? person)}
      onBlur={() => text !== undefined && apply(text)}
      completions={completions}
    />
  )
}

interface TimeFieldProps extends ValueProps {
  name: string
  label: string
  time: string | undefined
}

const TimeField = ({ name, label, time, onChange }: TimeFieldProps) => (
  <TextField
    key={time ?? ''}
    name={name}
    label={label}
    type="datetime-local"
    max={maxLocalTime}
    defaultValue={localTime(time)}
    onBlur={({ currentTarget: { value } }) => value !== localTime(time) && onChange(isoTime(value) || undefined)}
  />
)
