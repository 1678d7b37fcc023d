import { useSummary } from '../../../api/account.ts'
import { Loaded } from '../../../ui/state.tsx'
import { Numbers } from './numbers.tsx'
import { EmptyWidget } from './empty.tsx'

const statuses = ['Healthy', 'Degraded', 'Pending', 'Offline'] as const

export const ClusterNumbers = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ clusters }) =>
      clusters === undefined || clusters.total === 0 ? (
        <EmptyWidget text="No clusters yet." to={{ to: '/clusters' }} label="Go to clusters" />
      ) : (
        <Numbers
          items={statuses.map((status) => ({
            name: status,
            count: clusters.byStatus[status],
            to: { to: '/clusters', search: { status } },
          }))}
        />
      )
    }
  </Loaded>
)
