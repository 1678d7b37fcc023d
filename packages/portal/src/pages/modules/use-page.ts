import { queryOptions } from '@tanstack/react-query'
import { ApiError } from '../../api/api-error.ts'
import { fetchInSession } from '../../api/session.ts'

/**
 * Whether a page exists at a path, checked on every visit: a frame can neither report errors nor renew the session. The
 * frame shows responses of the module itself.
 */
export const pageQuery = (path: string) =>
  queryOptions({
    queryKey: ['module-page', path],
    queryFn: () => look(path),
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })

async function look(path: string): Promise<true> {
  if ((await ask(path, 'HEAD')).ok) return true
  // Only a GET has a body with the reason.
  const response = await ask(path, 'GET')
  const isSaid = response.headers.get('content-type')?.startsWith('application/json') === true
  if (response.ok || !isSaid) return true
  throw new ApiError(response.status, await response.json().catch(() => undefined), response.headers)
}

const ask = (path: string, method: string): Promise<Response> =>
  fetchInSession(new Request(location.origin + path, { method, headers: { accept: 'text/html' } })).catch(
    (cause: unknown) => {
      throw ApiError.unreachable(cause)
    },
  )
