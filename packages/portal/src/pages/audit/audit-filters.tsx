import { type SubmitEvent, useId, useState } from 'react'
import { isoTime, localTime, maxLocalTime } from '../../lib/local-time.ts'
import { Button } from '../../ui/button.tsx'
import { CompletionField } from '../../ui/completion-field.tsx'
import type { Completion } from '../../ui/completion.ts'
import { TextField } from '../../ui/field.tsx'
import { usePersonCompletions, useUsername } from '../users/use-user-name.ts'
import { actionTitles } from './action-titles.ts'
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
  const username = useUsername(filter.actor)
  const [draft, setDraft] = useFilterDraft(filter)
  const actor = draft.actor === filter.actor ? (username ?? draft.actor) : draft.actor
  const people = usePersonCompletions(actor)
  // The platform filters by id. Actors other than users have no name.
  const apply = () => onChange(filterOf({ ...draft, actor: people.idOf(draft.actor) }))
  const field = (name: keyof AuditFilter) => ({
    name,
    value: name === 'actor' ? actor : draft[name],
    onChange: (text: string) => setDraft({ ...draft, [name]: text }),
  })
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    apply()
  }
  return (
    <form aria-labelledby={id} className={styles['filters']} onSubmit={submit}>
      <h2 id={id} className="visually-hidden">
        Filters
      </h2>
      <CompletionField
        {...field('actor')}
        label="Actor"
        placeholder="Name or id"
        maxLength={64}
        completions={people.completions}
        onEnter={apply}
      />
      <CompletionField
        {...field('action')}
        label="Action"
        placeholder="cluster.delete"
        maxLength={100}
        completions={actionCompletions(draft.action)}
        onEnter={apply}
      />
      <TextField {...field('resource')} label="Resource" placeholder="clus_…" maxLength={200} isMono />
      <TextField {...field('from')} label="From" type="datetime-local" max={maxLocalTime} />
      <TextField {...field('to')} label="Before" type="datetime-local" max={maxLocalTime} />
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

function actionCompletions(text: string): Completion[] {
  const term = text.trim().toLowerCase()
  return Object.entries(actionTitles)
    .filter(([action, title]) => action.includes(term) || title.toLowerCase().includes(term))
    .map(([action, title]) => ({ text: action, label: action, hint: title }))
}

type Draft = Record<keyof AuditFilter, string>

// The fields show the filter in the URL until the user types. They keep the focus, because they are not remounted.
function useFilterDraft(filter: AuditFilter): [Draft, (draft: Draft) => void] {
  const [draft, setDraft] = useState(() => draftOf(filter))
  const [lastFilter, setLastFilter] = useState(filter)
  if (JSON.stringify(lastFilter) !== JSON.stringify(filter)) {
    setLastFilter(filter)
    setDraft(draftOf(filter))
  }
  return [draft, setDraft]
}

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
