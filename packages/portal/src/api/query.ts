import { type DataTag, QueryClient, type QueryKey } from '@tanstack/react-query'
import { ApiError } from './api-error.ts'

const secondMs = 1000
const maxPauseMs = 60 * secondMs

/**
 * Returns the pause before the next attempt, in milliseconds: one second, doubled with each failure, but at least
 * `Retry-After` and at most a minute.
 */
export const backOffMs = (failureCount: number, error: unknown): number => {
  const retryAfterMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * secondMs : 0
  return Math.min(maxPauseMs, Math.max(retryAfterMs, secondMs * 2 ** failureCount))
}

/**
 * By default, cached data is fresh for five seconds, and queries are retried up to three times after transient errors.
 */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The platform may be reachable without the internet.
      networkMode: 'always',
      staleTime: 5 * secondMs,
      retry: (failureCount, error) => failureCount < 3 && error instanceof ApiError && error.isTransient,
      retryDelay: backOffMs,
      throwOnError: false,
    },
    mutations: { networkMode: 'always', retry: false },
  },
})

/**
 * Stores the result of a write. Reads that started before it are cancelled and restarted, because they would overwrite
 * the result.
 */
export async function setQueryData<Data>(
  queryKey: DataTag<QueryKey, Data, Error>,
  change: (before: Data) => Data,
): Promise<void> {
  const wasFetching = queries.isFetching({ queryKey }) > 0
  await queries.cancelQueries({ queryKey })
  const before = queries.getQueryData<Data>(queryKey)
  if (before !== undefined) queries.setQueryData<Data>(queryKey, change(before))
  if (wasFetching || before === undefined) void queries.invalidateQueries({ queryKey })
}

/** Query `meta` for public data, which is kept after sign-out. */
export const publicQuery = { isPublic: true }

/** Returns a `refetchInterval` that polls while the tab is visible and backs off while the query fails. */
export const pollEvery =
  (seconds: number) =>
  ({ state }: { state: PollState }): number =>
    Math.min(maxPauseMs, Math.max(seconds * secondMs, state.status === 'error' ? failingMs(state) : 0))

interface PollState {
  status: string
  dataUpdatedAt: number
  errorUpdatedAt: number
  errorUpdateCount: number
}

// Returns how long the query has been failing, in milliseconds. If the query never succeeded, the value doubles with
// each failure.
const failingMs = ({ dataUpdatedAt, errorUpdatedAt, errorUpdateCount }: PollState): number =>
  dataUpdatedAt === 0 ? secondMs * 2 ** errorUpdateCount : errorUpdatedAt - dataUpdatedAt

/**
 * Refetches all data about modules. The list is refetched first, so that pages of removed modules close instead of
 * requesting them again.
 */
export async function refreshModules(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['modules'] })
  await queries.invalidateQueries({ queryKey: ['module'] })
}
