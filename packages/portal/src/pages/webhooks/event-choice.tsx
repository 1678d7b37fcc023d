import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { CheckField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'
import styles from './webhooks.module.css'

const everything = '*'
const ofModules = 'module.*'

interface EventChoiceProps {
  chosen: readonly string[]
  onChange: (events: string[]) => void
  /** What is wrong with what is chosen. */
  problem: string | undefined
}

/** What is wrong with a choice: the platform wants one at least. */
export const noEvents = (chosen: readonly string[]): string | undefined =>
  chosen.length === 0 ? 'Choose at least one event.' : undefined

/** A subscription in words. */
export function subscriptionText(name: string): string {
  if (name === everything) return 'Everything'
  if (name === ofModules) return 'What modules publish'
  const [, area] = /^platform\.(\w+)\.\*$/.exec(name) ?? []
  return area === undefined ? name : `All of ${area}`
}

/** What a webhook may subscribe to. */
type Subscription = Schemas['WebhookCreation']['events'][number]

/** Choices are made of the platform's own catalog; a name that is none the platform refuses. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
export const subscriptionsOf = (names: readonly string[]): Subscription[] => names as Subscription[]

/** Chooses what to hear of: everything, whole areas, or single events. What a choice includes goes without saying. */
export function EventChoice({ chosen, onChange, problem }: EventChoiceProps) {
  const id = useId()
  const query = useQuery({
    queryKey: ['event-catalog'],
    queryFn: () => unwrap(api.GET('/api/v1/events/catalog')),
    staleTime: Infinity,
  })
  const toggle = (name: string, isChosen: boolean) => onChange(withChoice(chosen, name, isChosen))
  const box = (name: string, label: string, includedIn: readonly string[]) => {
    const isIncluded = includedIn.some((each) => chosen.includes(each))
    return (
      <CheckField
        key={name}
        label={label}
        checked={isIncluded || chosen.includes(name)}
        disabled={isIncluded}
        onChange={(checked) => toggle(name, checked)}
      />
    )
  }
  return (
    <Loaded query={query} what="events">
      {({ items }) => (
        <fieldset className={styles['choice']} aria-describedby={id}>
          <legend>Events</legend>
          <div className={styles['events']}>
            {box(everything, 'Everything', [])}
            {[...areasOf(items.map(({ type }) => type))].map(([area, types]) => (
              <div key={area} className={styles['area']}>
                {box(`platform.${area}.*`, `All of ${area}`, [everything])}
                {types.map((type) => box(type, type, [everything, `platform.${area}.*`]))}
              </div>
            ))}
            {box(ofModules, 'What modules publish themselves', [everything])}
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

/** Choosing something takes out what it includes. */
function withChoice(chosen: readonly string[], name: string, isChosen: boolean): string[] {
  const others = chosen.filter((each) => each !== name)
  if (!isChosen) return others
  if (name === everything) return [everything]
  const area = name.endsWith('.*') ? name.slice(0, -1) : undefined
  return [...others.filter((each) => area === undefined || !each.startsWith(area)), name]
}

/** `platform.job.started` belongs to `job`. */
function areasOf(types: readonly string[]): Map<string, string[]> {
  const areas = new Map<string, string[]>()
  for (const type of types) {
    const [, area = ''] = type.split('.')
    areas.set(area, [...(areas.get(area) ?? []), type])
  }
  return areas
}
