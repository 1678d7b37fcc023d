import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, unwrap } from '../../../api/client.ts'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import { Severity } from '../../notifications/severity.tsx'
import { EmptyWidget } from './empty.tsx'
import styles from './widgets.module.css'

const pageSize = 6

/** Refetches when the unread count changes; no poll of its own. */
export function Unread() {
  const query = useQuery({
    queryKey: ['notifications', 'newest unread'],
    queryFn: () => unwrap(api.GET('/api/v1/notifications', { params: { query: { unreadOnly: true, pageSize } } })),
    staleTime: 60_000,
  })
  return (
    <Loaded query={query} what="notifications">
      {({ items }) =>
        items.length === 0 ? (
          <EmptyWidget text="No unread notifications." to={{ to: '/notifications' }} label="All notifications" />
        ) : (
          <ul className={styles['rows']}>
            {items.map(({ id, title, severity, createdAt }) => (
              <li key={id}>
                <Severity severity={severity} />
                <Link to="/notifications" className={styles['name']}>
                  {title}
                </Link>
                <Time at={createdAt} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
