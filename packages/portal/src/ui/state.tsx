import type { UseQueryResult } from '@tanstack/react-query'
import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { useIsOffline } from '../api/account.ts'
import { Spinner } from './button.tsx'
import { ErrorNote } from './error-note.tsx'
import styles from './state.module.css'

interface EmptyStateProps {
  icon: LucideIcon
  title: string
  /** What to do about it. */
  children: ReactNode
  action?: ReactNode
}

/** Instead of a list that has nothing: why that is, and what to do next. */
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

/** Instead of what has not come yet. Nothing is seen of it for the first moment. */
export const Loading = ({ what }: { what: string }) => (
  <div role="status" aria-busy className={styles['loading']}>
    <Spinner /> Loading {what} …
  </div>
)

interface LoadedProps<Data> {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>
  what: string
  children: (data: Data) => ReactNode
}

/** What a query has brought; what it waits for, or what went wrong. Old data stay in sight while a refresh fails. */
export function Loaded<Data>({ query: { data, error, refetch }, what, children }: LoadedProps<Data>) {
  // Then the shell says so, once: a note in every part of the page would push away what is still worth reading.
  const isAway = useIsOffline()
  if (data === undefined) {
    return error === null ? <Loading what={what} /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  }
  return (
    <>
      {error !== null && !isAway && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {children(data)}
    </>
  )
}
