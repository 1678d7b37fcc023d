import { Layers } from 'lucide-react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { ShortId } from './job-list.tsx'

type Batch = Schemas['Batch']

const columns: VirtualColumn<Batch>[] = [
  {
    title: 'Batch',
    width: 'minmax(10rem, 2fr)',
    narrow: 'start',
    cell: ({ id, title, submittedCount }) => (
      <RowLink to="/jobs/batches/$batchId" params={{ batchId: id }}>
        {title} ({submittedCount === 1 ? '1 job' : `${submittedCount} jobs`}) <ShortId id={id} />
      </RowLink>
    ),
  },
  {
    title: 'Status',
    width: '8rem',
    narrow: 'end',
    cell: ({ status }) => <Badge variant={status === 'Finished' ? 'quiet' : 'busy'}>{status}</Badge>,
  },
  { title: 'Completed', width: '6rem', isEnd: true, narrow: 'hidden', cell: ({ counts }) => counts.completed },
  { title: 'Failed', width: '5rem', isEnd: true, narrow: 'hidden', cell: ({ counts }) => counts.failed },
  { title: 'By', width: 'minmax(6rem, 1fr)', narrow: 'hidden', cell: ({ createdBy }) => createdBy.username },
  { title: 'Submitted', width: 'minmax(9rem, 1fr)', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

export const BatchList = () => (
  <PagedTable
    label="Batches"
    queryKey={['batches', 'list']}
    fetchPage={(page, signal) =>
      unwrap(api.GET('/api/v1/jobs/batch', { params: { query: { page, pageSize } }, signal }))
    }
    columns={columns}
    rowKey={({ id }) => id}
    pollSeconds={5}
    summary={(total) => (total === 1 ? '1 batch' : `${total.toLocaleString('en')} batches`)}
    empty={
      <EmptyState icon={Layers} title="No batches yet">
        Run a script on several clusters to create a batch.
      </EmptyState>
    }
  />
)
