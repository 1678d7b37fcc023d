import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { Compass } from 'lucide-react'
import { ApiError } from '../api/api-error.ts'
import { ButtonLink } from '../ui/button.tsx'
import { ErrorNote } from '../ui/error-note.tsx'
import { Page } from '../ui/page.tsx'
import { EmptyState } from '../ui/state.tsx'

export function PageFailure({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  const retry = () => {
    reset()
    void router.invalidate()
  }
  if (error instanceof ApiError && error.status === 404) return <NotFound />
  return (
    <Page title="Failed to load this page">
      <ErrorNote error={error} onRetry={retry} />
    </Page>
  )
}

export const NotFound = () => (
  <Page title="Page not found">
    <EmptyState
      icon={Compass}
      title="This page does not exist"
      action={<ButtonLink to="/dashboard">Go to the dashboard</ButtonLink>}
    >
      The link is outdated, or the page was removed.
    </EmptyState>
  </Page>
)
