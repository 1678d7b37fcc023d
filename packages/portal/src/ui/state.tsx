import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { useIsOffline } from '../api/account.ts'
import { Spinner } from './button.tsx'
import { ErrorNote } from './error-note.tsx'
import styles from './state.module.css'

interface EmptyStateProps {
  icon: LucideIcon
  title: string
  /** Explanation of the next step. */
  children: ReactNode
  action?: ReactNode
}

/** Shown instead of an empty list. It states the reason and the next step. */
export const EmptyState = ({ icon: Icon, title, children, action }: EmptyStateProps) => (
  <div className={styles['state']}>
    <Icon size={32} aria-hidden />
    <p>
      <strong>{title}</strong>
    </p>
    <p className={styles['text']}>{children}</p>
    {action !== undefined && <div className={styles['actions']}>{action}</div>}
  </div>
)

/** A placeholder for data that is being loaded. The style sheet delays it, so that fast responses do not flicker. */
export function Loading({ what }: { what: string }) {
  const isOffline = useIsOffline()
  return (
    <div role="status" aria-busy className={styles['loading']}>
      {isOffline ? (
        `Waiting for the platform to load ${what}.`
      ) : (
        <>
          <Spinner /> Loading {what} …
        </>
      )}
    </div>
  )
}

interface LoadedProps<Data> {
  query: { data: Data | undefined; error: Error | null; refetch: () => unknown }
  what: string
  children: (data: Data) => ReactNode
}

/** Renders the data of a query, or its loading state or error. If a refresh fails, the old data stays visible. */
export function Loaded<Data>({ query: { data, error, refetch }, what, children }: LoadedProps<Data>) {
  // While the platform is down, the shell shows one banner instead of an error in each part of the page.
  const isOffline = useIsOffline()
  if (data === undefined) {
    return error === null || isOffline ? (
      <Loading what={what} />
    ) : (
      <ErrorNote error={error} onRetry={() => void refetch()} />
    )
  }
  return (
    <>
      {error !== null && !isOffline && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {children(data)}
    </>
  )
}
