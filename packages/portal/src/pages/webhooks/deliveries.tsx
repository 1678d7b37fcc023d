import { useQuery } from '@tanstack/react-query'
import { RotateCw } from 'lucide-react'
import { useId, useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast, showErrorToast } from '../../ui/toast.tsx'
import { DeliveryAttempts } from './delivery-attempts.tsx'
import styles from './webhooks.module.css'
import { webhooksKey } from './webhooks-key.ts'

type Delivery = Schemas['Delivery']

const pageSize = 20

export function Deliveries({ webhookId }: { webhookId: string }) {
  const headingId = useId()
  const [page, setPage] = useState(1)
  const key = [...webhooksKey, webhookId]
  const query = useQuery({
    queryKey: [...key, page],
    queryFn: () =>
      unwrap(
        api.GET('/api/v1/webhooks/{id}/deliveries', { params: { path: { id: webhookId }, query: { page, pageSize } } }),
      ),
    refetchInterval: pollEvery(5),
  })
  const redeliver = async (deliveryId: string) => {
    await unwrap(
      api.POST('/api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver', {
        params: { path: { id: webhookId, deliveryId } },
      }),
    )
    await queries.invalidateQueries({ queryKey: key })
    showToast('Redelivery started')
  }
  const again = (id: string) =>
    void redeliver(id).catch((error: unknown) => showErrorToast('Failed to redeliver the event', error))
  return (
    <section aria-labelledby={headingId} className={styles['stack']}>
      <h3 id={headingId}>Deliveries</h3>
      <Loaded query={query} what="deliveries">
        {({ items, totalCount }) => (
          <>
            {items.length === 0 && <p>No deliveries yet. Send a test event to check the address.</p>}
            {items.length > 0 && (
              <Table label="Deliveries" columns={columnsOf(again)} rows={items} keyOf={({ id }) => id} />
            )}
            {totalCount > pageSize && (
              <div className={styles['pager']}>
                <Button onClick={() => setPage(page - 1)} disabled={page === 1}>
                  Newer
                </Button>
                <Button onClick={() => setPage(page + 1)} disabled={page * pageSize >= totalCount}>
                  Older
                </Button>
                <span role="status">
                  Page {page} of {Math.ceil(totalCount / pageSize)}
                </span>
              </div>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

const columnsOf = (again: (id: string) => void): Column<Delivery>[] => [
  { title: 'Event', cell: ({ eventType }) => <code>{eventType}</code> },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} />, isNarrow: true },
  { title: 'Attempts', cell: (delivery) => <DeliveryAttempts delivery={delivery} /> },
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} />, isNarrow: true },
  {
    title: '',
    hiddenTitle: 'Actions',
    isNarrow: true,
    cell: ({ id, eventType }) => (
      <Button icon={RotateCw} onClick={() => again(id)} aria-label={`Deliver ${eventType} again`}>
        Again
      </Button>
    ),
  },
]
