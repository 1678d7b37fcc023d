import { Link, type LinkProps } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { variantOf } from '../../../ui/badge.tsx'
import { classes } from '../../../ui/class-names.ts'
import { Loaded } from '../../../ui/state.tsx'
import { useNow } from '../../../ui/time.tsx'
import { clusterStatuses } from '../../clusters/cluster-filter.ts'
import { useClusterCounts, type WidgetProps } from './cluster-counts.ts'
import { EmptyWidget, NoClusters } from './empty.tsx'
import { rangeNames, startOf, useHistory, useRange } from './history-charts.tsx'
import styles from './widgets.module.css'

interface NumbersProps {
  items: readonly {
    name: string
    count: number
    variant?: string
    to: LinkProps
    /** The number in the previous period, or at its end; undefined if it is unknown. */
    previous?: number | undefined
  }[]
}

const Numbers = ({ items }: NumbersProps) => (
  <ul className={styles['numbers']}>
    {items.map(({ name, count, variant = name, to, previous }) => (
      <li key={name}>
        <Link {...to} className={styles['number']}>
          <span>
            <strong className={classes(styles['count'], count > 0 && styles[variantOf(variant)])}>{count}</strong>{' '}
            {previous !== undefined && <Change count={count} previous={previous} />}
          </span>
          <span>{name}</span>
        </Link>
      </li>
    ))}
  </ul>
)

function Change({ count, previous }: { count: number; previous: number }) {
  const period = rangeNames[useRange()]
  const change = count - previous
  const sign = change > 0 ? '+' : change < 0 ? '−' : '±'
  return (
    <span className={styles['change']} title={`Compared with the previous ${period}: ${previous.toLocaleString('en')}`}>
      {sign}
      {Math.abs(change).toLocaleString('en')}
      <span className="visually-hidden"> compared with the previous {period}</span>
    </span>
  )
}

export function ClusterNumbers({ selector }: WidgetProps) {
  const history = useHistory().data
  const before = selector === undefined ? history?.previous.clusters?.byStatus : undefined
  return (
    <Loaded query={useClusterCounts(selector)} what="the numbers">
      {(counts) =>
        clusterStatuses.every((status) => counts[status] === 0) ? (
          selector === undefined ? (
            <NoClusters />
          ) : (
            <EmptyWidget text="No clusters with these labels." to={{ to: '/clusters' }} label="All clusters" />
          )
        ) : (
          <Numbers
            items={clusterStatuses.map((status) => ({
              name: status,
              count: counts[status],
              previous: before?.[status],
              to: { to: '/clusters', search: { status, ...(selector !== undefined && { selector }) } },
            }))}
          />
        )
      }
    </Loaded>
  )
}

const activeStatuses = ['Queued', 'Running'] as const
const endCounters = { Completed: 'completed', Failed: 'failed', Cancelled: 'cancelled' } as const
const endStatuses = ['Completed', 'Failed', 'Cancelled'] as const

/** The jobs that wait or run now, and those that ended in the period. */
export function JobNumbers() {
  const range = useRange()
  const nowMs = useNow()
  const history = useHistory().data
  const endedNumbers =
    history === undefined
      ? []
      : endStatuses.map((status) => ({
          name: status,
          count: history.points.reduce((sum, { jobs }) => sum + (jobs?.[endCounters[status]] ?? 0), 0),
          previous: history.previous.jobs?.[endCounters[status]],
          // The linked list contains only jobs that were submitted in the period.
          to: { to: '/jobs', search: { status, since: startOf(range, nowMs) } } as const,
        }))
  return (
    <Loaded query={useSummary()} what="the numbers">
      {({ jobs }) =>
        jobs === undefined || jobs.total === 0 ? (
          <EmptyWidget text="No jobs yet." to={{ to: '/jobs' }} label="Go to jobs" />
        ) : (
          <Numbers
            items={[
              ...activeStatuses.map((status) => ({
                name: status,
                count: jobs.byStatus[status],
                to: { to: '/jobs', search: { status } } as const,
              })),
              ...endedNumbers,
            ]}
          />
        )
      }
    </Loaded>
  )
}

export const ModuleNumbers = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ modules }) =>
      modules === undefined || modules.installed === 0 ? (
        <EmptyWidget text="No modules installed." to={{ to: '/modules' }} label="Open catalog" />
      ) : (
        <Numbers
          items={[
            { name: 'Installed', count: modules.installed, to: { to: '/modules' } },
            { name: 'Unhealthy', count: modules.unhealthy, to: { to: '/modules' } },
            { name: 'Updates', variant: 'Running', count: modules.updatesAvailable, to: { to: '/modules' } },
          ]}
        />
      )
    }
  </Loaded>
)
