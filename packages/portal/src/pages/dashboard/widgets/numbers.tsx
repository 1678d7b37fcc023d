import { Link, type LinkProps } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { variantOf } from '../../../ui/badge.tsx'
import { classes } from '../../../ui/class-names.ts'
import { Loaded } from '../../../ui/state.tsx'
import { clusterStatuses } from '../../clusters/cluster-filter.ts'
import { jobStatuses } from '../../jobs/status.ts'
import { useClusterCounts, type WidgetProps } from './cluster-counts.ts'
import { EmptyWidget } from './empty.tsx'
import styles from './widgets.module.css'

interface NumbersProps {
  items: readonly { name: string; count: number; variant?: string; to: LinkProps }[]
}

const Numbers = ({ items }: NumbersProps) => (
  <ul className={styles['numbers']}>
    {items.map(({ name, count, variant = name, to }) => (
      <li key={name}>
        <Link {...to} className={styles['number']}>
          <strong className={classes(styles['count'], count > 0 && styles[variantOf(variant)])}>{count}</strong>
          <span>{name}</span>
        </Link>
      </li>
    ))}
  </ul>
)

export const ClusterNumbers = ({ selector }: WidgetProps) => (
  <Loaded query={useClusterCounts(selector)} what="the numbers">
    {(counts) =>
      clusterStatuses.every((status) => counts[status] === 0) ? (
        <EmptyWidget text="No clusters yet." to={{ to: '/clusters' }} label="Go to clusters" />
      ) : (
        <Numbers
          items={clusterStatuses.map((status) => ({
            name: status,
            count: counts[status],
            to: { to: '/clusters', search: { status, ...(selector !== undefined && { selector }) } },
          }))}
        />
      )
    }
  </Loaded>
)

export const JobNumbers = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ jobs }) =>
      jobs === undefined || jobs.total === 0 ? (
        <EmptyWidget text="No jobs yet." to={{ to: '/jobs' }} label="Go to jobs" />
      ) : (
        <Numbers
          items={jobStatuses.map((status) => ({
            name: status,
            count: jobs.byStatus[status],
            to: { to: '/jobs', search: { status } },
          }))}
        />
      )
    }
  </Loaded>
)

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
