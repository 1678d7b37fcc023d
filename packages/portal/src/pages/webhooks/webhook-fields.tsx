import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'
import { SelectorField } from '../clusters/selector-field.tsx'
import styles from './webhooks.module.css'

const allEvents = '*'
const moduleEvents = 'module.*'

interface EventChoiceProps {
  chosen: readonly string[]
  onChange: (events: string[]) => void
  problem: string | undefined
}

export const eventsProblem = (chosenEvents: readonly string[]): string | undefined =>
  chosenEvents.length === 0 ? 'Choose at least one event.' : undefined

export function subscriptionText(name: string): string {
  if (name === allEvents) return 'All events'
  if (name === moduleEvents) return 'Module events'
  const [, area] = /^platform\.(\w+)\.\*$/.exec(name) ?? []
  return area === undefined ? name : `All ${area} events`
}

type Subscription = Schemas['WebhookCreation']['events'][number]

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the API rejects unknown names
export const subscriptionsOf = (names: readonly string[]): Subscription[] => names as Subscription[]

/**
 * Selects all events, areas of events, or individual events. A selected area includes its events, which are then
 * disabled.
 */
export function EventChoice({ chosen, onChange, problem }: EventChoiceProps) {
  const id = useId()
  const query = useQuery({
    queryKey: ['event-catalog'],
    queryFn: () => unwrap(api.GET('/api/v1/events/catalog')),
    staleTime: Infinity,
  })
  const toggle = (name: string, isChosen: boolean) => onChange(withChoice(chosen, name, isChosen))
  const checkbox = (name: string, label: string, includedIn: readonly string[]) => {
    const isIncluded = includedIn.some((each) => chosen.includes(each))
    return (
      <CheckField
        key={name}
        label={label}
        checked={isIncluded || chosen.includes(name)}
        disabled={isIncluded}
        onChange={(isChecked) => toggle(name, isChecked)}
      />
    )
  }
  return (
    <Loaded query={query} what="events">
      {({ items }) => (
        <fieldset className={styles['choice']} aria-describedby={id}>
          <legend>Events</legend>
          <div className={styles['events']}>
            {checkbox(allEvents, 'All events', [])}
            {[...areasOf(items.map(({ type }) => type))].map(([area, types]) => (
              <div key={area} className={styles['area']}>
                {checkbox(`platform.${area}.*`, `All ${area} events`, [allEvents])}
                {types.map((type) => checkbox(type, type, [allEvents, `platform.${area}.*`]))}
              </div>
            ))}
            {checkbox(moduleEvents, 'Module events', [allEvents])}
          </div>
          <div id={id}>
            {problem !== undefined && (
              <p role="alert" className={styles['problem']}>
                {problem}
              </p>
            )}
          </div>
        </fieldset>
      )}
    </Loaded>
  )
}

// A selected area replaces its individual events.
function withChoice(chosenEvents: readonly string[], name: string, isChosen: boolean): string[] {
  const others = chosenEvents.filter((each) => each !== name)
  if (!isChosen) return others
  if (name === allEvents) return [allEvents]
  const area = name.endsWith('.*') ? name.slice(0, -1) : undefined
  return [...others.filter((each) => area === undefined || !each.startsWith(area)), name]
}

// For example, `platform.job.started` belongs to the area `job`.
function areasOf(types: readonly string[]): Map<string, string[]> {
  const areas = new Map<string, string[]>()
  for (const type of types) {
    const [, area = ''] = type.split('.')
    areas.set(area, [...(areas.get(area) ?? []), type])
  }
  return areas
}

interface SelectorProps {
  selector: string
  onChange: (selector: string) => void
}

export const ClusterSelector = ({ selector, onChange }: SelectorProps) => (
  <SelectorField value={selector} onChange={onChange} hint="Optional: only events about clusters with these labels." />
)

export const AddressField = ({ url }: { url?: string }) => (
  <TextField
    name="url"
    label="Address"
    type="url"
    defaultValue={url}
    placeholder="https://hooks.example.com/platform"
    hint="Private addresses are rejected unless the operator allows them."
    autoComplete="off"
    maxLength={2000}
    required
    isMono
  />
)
