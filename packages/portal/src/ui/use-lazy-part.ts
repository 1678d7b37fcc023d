import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { showErrorToast } from './toast.tsx'

/**
 * A part that loads on first use, and the function that loads it. A failure shows a toast and keeps the page; the next
 * attempt may succeed.
 */
export function useLazyPart<Part>(load: () => Promise<Part>, failure: string) {
  const [late, setLate] = useState<{ part: Part }>()
  const fetchPart = () =>
    void load().then(
      (part) => setLate({ part }),
      (cause: unknown) => showErrorToast(failure, ApiError.unreachable(cause)),
    )
  return [late?.part, fetchPart] as const
}
