import { useSummary } from '../../../api/account.ts'
import { Loaded } from '../../../ui/state.tsx'
import { Numbers } from './numbers.tsx'
import { EmptyWidget } from './empty.tsx'

const statuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const

export const JobNumbers = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ jobs }) =>
      jobs === undefined || jobs.total === 0 ? (
        <EmptyWidget text="No jobs yet." to={{ to: '/jobs' }} label="Go to jobs" />
      ) : (
        <Numbers
          items={statuses.map((status) => ({
            name: status,
            count: jobs.byStatus[status],
            to: { to: '/jobs', search: { status } },
          }))}
        />
      )
    }
  </Loaded>
)
