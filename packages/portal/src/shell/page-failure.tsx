import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { ApiError } from '../api/api-error.ts'
import { ErrorNote } from '../ui/error-note.tsx'
import { Page } from '../ui/page.tsx'
import { NotFound } from './not-found.tsx'

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
