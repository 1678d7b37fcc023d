import { useQuery } from '@tanstack/react-query'
import { RotateCw } from 'lucide-react'
import { useId, useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { showErrorToast, showToast } from '../../ui/toast.tsx'
import styles from './webhooks.module.css'

export const webhooksKey = ['webhooks']

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
  const onRedeliver = (id: string) =>
    void redeliver(id).catch((error: unknown) => showErrorToast('Failed to redeliver the event', error))
  return (
    <section aria-labelledby={headingId} className={styles['stack']}>
      <h3 id={headingId}>Deliveries</h3>
      <Loaded query={query} what="deliveries">
        {({ items, totalCount }) => (
          <>
            {items.length === 0 && <p>No deliveries yet. Send a test event to check the address.</p>}
            {items.length > 0 && (
              <Table label="Deliveries" columns={columnsOf(onRedeliver)} rows={items} keyOf={({ id }) => id} />
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

const columnsOf = (onRedeliver: (id: string) => void): Column<Delivery>[] => [
  { title: 'Event', cell: ({ eventType }) => <code>{eventType}</code> },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} />, isNarrow: true },
  { title: 'Attempts', cell: (delivery) => <DeliveryAttempts delivery={delivery} /> },
  { title: 'Time', cell: ({ createdAt }) => <Time at={createdAt} />, isNarrow: true },
  {
    title: '',
    hiddenTitle: 'Actions',
    isNarrow: true,
    cell: ({ id, eventType }) => (
      <Button icon={RotateCw} onClick={() => onRedeliver(id)} aria-label={`Redeliver ${eventType}`}>
        Redeliver
      </Button>
    ),
  },
]

type Attempt = Delivery['attempts'][number]

const reasons: Readonly<Record<NonNullable<Attempt['error']>, string>> = {
  url_not_allowed: 'address not allowed',
  address_not_allowed: 'private address',
  name_not_resolved: 'host not found',
  certificate_not_trusted: 'untrusted certificate',
  connection_failed: 'no connection',
  timed_out: 'timed out',
  redirected: 'redirected',
  unsuccessful_status: 'rejected',
}

const maxShownAttempts = 3

function DeliveryAttempts({ delivery: { attempts, nextAttemptAt } }: { delivery: Delivery }) {
  const earlierCount = attempts.length - maxShownAttempts
  if (attempts.length === 0 && nextAttemptAt === undefined) return 'None'
  return (
    <ol className={styles['attempts']}>
      {earlierCount > 0 && <li>{earlierCount} earlier</li>}
      {attempts.slice(-maxShownAttempts).map((attempt) => (
        <li key={attempt.at}>{attemptText(attempt)}</li>
      ))}
      {nextAttemptAt !== undefined && (
        <li>
          Next <Time at={nextAttemptAt} />
        </li>
      )}
    </ol>
  )
}

function attemptText({ statusCode, error, durationMs }: Attempt): string {
  const reason = error && reasons[error]
  const outcome = [statusCode, reason].filter((word) => word !== undefined).join(', ')
  return `${outcome} in ${durationMs.toLocaleString('en')} ms`
}
