import { useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { navigationQuery } from '../api/account.ts'
import type { Schemas } from '../api/client.ts'
import { Icon } from '../ui/icon.tsx'
import styles from './navigation.module.css'

type Entry = Schemas['NavigationEntry']

const groups: readonly { slotId: Entry['slotId']; heading?: string }[] = [
  { slotId: 'nav.primary' },
  { slotId: 'nav.settings', heading: 'Settings' },
]

export const useNavigation = (): Entry[] => useSuspenseQuery(navigationQuery).data.items

export function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const entries = useNavigation()
  return (
    <nav aria-label="Main">
      {groups.map(({ slotId, heading }) => (
        <Group
          key={slotId}
          heading={heading}
          entries={entries.filter((entry) => entry.slotId === slotId)}
          onNavigate={onNavigate}
        />
      ))}
    </nav>
  )
}

interface GroupProps {
  heading: string | undefined
  entries: readonly Entry[]
  onNavigate: (() => void) | undefined
}

const Group = ({ heading, entries, onNavigate }: GroupProps) =>
  entries.length > 0 && (
    <div className={styles['group']}>
      {heading !== undefined && <p className={styles['heading']}>{heading}</p>}
      <ul>
        {entries.map(({ source, id, label, icon, route }) => (
          <li key={`${source} ${id}`}>
            <Link to={route} className={styles['link']} onClick={onNavigate} activeOptions={activeFor(route, entries)}>
              <Icon name={icon} /> {label}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  )

// An entry is also active for pages below it, unless one of them has its own entry.
const activeFor = (route: string, entries: readonly Entry[]) => ({
  includeSearch: false,
  exact: entries.some((other) => other.route.startsWith(`${route}/`)),
})
