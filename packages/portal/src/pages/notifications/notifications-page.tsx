import { BellOff, CheckCheck, FilterX } from 'lucide-react'
import { useUnreadCount } from '../../api/account.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Filters, useFilter } from './filters.tsx'
import { NotificationRow } from './notification-row.tsx'
import styles from './notifications.module.css'
import { markRead, useNotifications } from './use-notifications.ts'

export function NotificationsPage() {
  const filter = useFilter()
  const query = useNotifications(filter)
  const unreadCount = useUnreadCount()
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query
  return (
    <Page
      title="Notifications"
      lead="Events of the last 90 days."
      actions={
        unreadCount > 0 && (
          <Button icon={CheckCheck} onClick={() => void markRead('all')}>
            Mark all as read
          </Button>
        )
      }
    >
      <Filters />
      <p role="status" className="visually-hidden">
        {unreadCount} unread
      </p>
      <Loaded query={query} what="notifications">
        {({ items, totalCount }) =>
          items.length === 0 ? (
            <NoNotifications isFiltered={filter.unreadOnly || !!filter.type || !!filter.severity} />
          ) : (
            <>
              <ul className={styles['list']} aria-label="Notifications" tabIndex={-1}>
                {items.map((notification) => (
                  <NotificationRow key={notification.id} notification={notification} />
                ))}
              </ul>
              <div className={styles['more']}>
                <span>
                  {items.length} of {totalCount}
                </span>
                {hasNextPage && (
                  <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
                    Show more
                  </Button>
                )}
              </div>
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

const NoNotifications = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <EmptyState
      icon={FilterX}
      title="No matching notifications"
      action={
        <ButtonLink to="/notifications" search={{}}>
          Show all
        </ButtonLink>
      }
    >
      Read notifications are in the full list.
    </EmptyState>
  ) : (
    <EmptyState icon={BellOff} title="No notifications yet">
      Offline clusters, failed jobs and other events appear here.
    </EmptyState>
  )
