import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { showErrorToast } from './toast.tsx'

/**
 * A part of the page that is loaded when it is first wanted, and what loads it. Where it does not come that is told in passing,
 * and the page stays as it is: the next try may bring it.
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
