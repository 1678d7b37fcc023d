import { type SubmitEvent, useId, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import styles from './audit.module.css'

/** Values of the filter. Times are ISO 8601. */
export interface AuditFilter {
  actor?: string
  action?: string
  resource?: string
  from?: string
  to?: string
}

/** The fields of the filter, which are applied on submit. Times are in the browser's time zone. */
export function AuditFilters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const id = useId()
  const [draft, setDraft] = useDraft(filter)
  const field = (name: keyof AuditFilter) => ({
    name,
    value: draft[name],
    onChange: (text: string) => setDraft({ ...draft, [name]: text }),
  })
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onChange(filterOf(draft))
  }
  return (
    <form aria-labelledby={id} className={styles['filters']} onSubmit={submit}>
      <h2 id={id} className="visually-hidden">
        Filters
      </h2>
      <TextField {...field('actor')} label="Actor" placeholder="user_…" maxLength={40} isMono />
      <TextField {...field('action')} label="Action" placeholder="cluster.delete" maxLength={100} isMono />
      <TextField {...field('resource')} label="Resource" placeholder="clus_…" maxLength={200} isMono />
      <TextField {...field('from')} label="From" type="datetime-local" max={maxTime} />
      <TextField {...field('to')} label="Before" type="datetime-local" max={maxTime} />
      <div className={styles['buttons']}>
        <Button type="submit">Filter</Button>
        {Object.keys(filter).length > 0 && (
          <Button variant="quiet" onClick={() => onChange({})}>
            Show all
          </Button>
        )}
      </div>
    </form>
  )
}

type Draft = Record<keyof AuditFilter, string>

// The fields show the filter in the URL until the user types. They keep the focus, because they are not remounted.
function useDraft(filter: AuditFilter): [Draft, (draft: Draft) => void] {
  const [draft, setDraft] = useState(() => draftOf(filter))
  const [lastFilter, setLastFilter] = useState(filter)
  if (JSON.stringify(lastFilter) !== JSON.stringify(filter)) {
    setLastFilter(filter)
    setDraft(draftOf(filter))
  }
  return [draft, setDraft]
}

// Browsers accept years of six digits; the API does not.
const maxTime = '9999-12-31T23:59'

const draftOf = ({ actor = '', action = '', resource = '', from, to }: AuditFilter): Draft => ({
  actor,
  action,
  resource,
  from: localTime(from),
  to: localTime(to),
})

function filterOf({ actor, action, resource, from, to }: Draft): AuditFilter {
  const entries = [
    ...Object.entries({ actor, action, resource }).map(([name, text]) => [name, text.trim()] as const),
    ...Object.entries({ from, to }).map(([name, text]) => [name, isoTime(text)] as const),
  ]
  return Object.fromEntries(entries.filter(([, value]) => value !== ''))
}

function isoTime(local: string): string {
  const atMs = Date.parse(local)
  return Number.isNaN(atMs) ? '' : new Date(atMs).toISOString()
}

// The format of datetime fields has no time zone.
function localTime(iso: string | undefined): string {
  const atMs = Date.parse(iso ?? '')
  if (Number.isNaN(atMs)) return ''
  const offsetMs = new Date(atMs).getTimezoneOffset() * 60_000
  return new Date(atMs - offsetMs).toISOString().slice(0, 16)
}
