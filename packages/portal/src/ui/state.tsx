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
  /** What the user can do. */
  children: ReactNode
  action?: ReactNode
}

/** Replaces an empty list: the reason and the next step. */
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

/** A placeholder that appears after a moment. */
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

/** The data of a query, or its loading state or error. Keeps old data when a refresh fails. */
export function Loaded<Data>({ query: { data, error, refetch }, what, children }: LoadedProps<Data>) {
  // The shell shows one banner instead of an error in every part of the page.
  const isOffline = useIsOffline()
  if (data === undefined) {
    return error === null ? <Loading what={what} /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  }
  return (
    <>
      {error !== null && !isOffline && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {children(data)}
    </>
  )
}
