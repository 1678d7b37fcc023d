import { Link } from '@tanstack/react-router'
import { Activity, CalendarClock, History, type LucideIcon, SquareTerminal, UserPen } from 'lucide-react'
import { useMe } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { useUserName } from '../users/use-user-name.ts'
import styles from './clusters.module.css'

type Entry = Schemas['TimelineEntry']

const kindIcons: Record<Entry['kind'], LucideIcon> = {
  status: Activity,
  job: SquareTerminal,
  audit: UserPen,
  event: CalendarClock,
}

const columns: VirtualColumn<Entry>[] = [
  { title: 'Event', width: 'minmax(14rem, 4fr)', narrow: 'start', cell: (entry) => <EventCell entry={entry} /> },
  { title: 'User', width: 'minmax(7rem, 1fr)', cell: ({ actor }) => <ActorCell actor={actor} /> },
  { title: 'Time', width: '15rem', cell: ({ at }) => <Time at={at} isAbsolute /> },
]

export const TimelineTab = ({ clusterId }: { clusterId: string }) => (
  <PagedTable
    label="Timeline"
    queryKey={['clusters', 'timeline', clusterId]}
    fetchPage={(page, signal) => {
      const params = { path: { id: clusterId }, query: { page, pageSize } }
      return unwrap(api.GET('/api/v1/clusters/{id}/timeline', { params, signal }))
    }}
    columns={columns}
    rowKey={({ id }) => id}
    rowHeight={{ wide: 3.5, narrow: 5 }}
    pollSeconds={5}
    empty={
      <EmptyState icon={History} title="No events yet">
        Status changes, jobs and user actions appear here.
      </EmptyState>
    }
  />
)

function EventCell({ entry: { kind, title, detail, resource, endedAt } }: { entry: Entry }) {
  const Icon = kindIcons[kind]
  const isJob = resource?.startsWith('job_') ?? false
  return (
    <div className={styles['what']}>
      <Icon size={16} aria-hidden />
      <div className={styles['texts']}>
        {isJob && resource !== undefined ? (
          <Link to="/jobs/$jobId" params={{ jobId: resource }}>
            {title}
          </Link>
        ) : (
          <span>{title}</span>
        )}
        {(detail ?? endedAt) !== undefined && (
          <span className={styles['detail']} title={detail}>
            {detail}
            {endedAt !== undefined && (
              <>
                {detail === undefined ? 'Ended ' : ', ended '}
                <Time at={endedAt} isAbsolute />
              </>
            )}
          </span>
        )}
      </div>
    </div>
  )
}

const actorKinds: Record<Schemas['AuditActor']['kind'], string> = {
  user: 'a user',
  relay: 'the relay',
  system: 'the platform',
}

function ActorCell({ actor }: { actor: Entry['actor'] }) {
  const me = useMe()
  const name = useUserName(actor?.id ?? '')
  if (actor === undefined) return null
  return <span title={actor.id}>{actor.id === me.id ? 'you' : (name ?? actorKinds[actor.kind])}</span>
}
