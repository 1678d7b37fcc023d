import { type DataTag, QueryClient, type QueryKey } from '@tanstack/react-query'
import { ApiError } from './api-error.ts'

const secondMs = 1000
const longestPauseMs = 60 * secondMs

/** How long to wait after so many failures in a row: twice as long each time, or what the platform asked for. */
export const backOffMs = (failures: number, error: unknown): number => {
  const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * secondMs : 0
  return Math.min(longestPauseMs, Math.max(asked, secondMs * 2 ** failures))
}

/** Answers are fresh for a few seconds; what may pass is tried again, what will not is told at once. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5 * secondMs,
      retry: (failures, error) => failures < 3 && error instanceof ApiError && error.isPassing,
      retryDelay: backOffMs,
      throwOnError: false,
    },
    mutations: { retry: false },
  },
})

/**
 * Puts what a write has done into what is known. A look that is under way may have begun before the write and would undo it: it is
 * given up, and begins once more. So it does where nothing is known yet.
 */
export async function setQueryData<Data>(
  queryKey: DataTag<QueryKey, Data, Error>,
  change: (before: Data) => Data,
): Promise<void> {
  const isAsked = queries.isFetching({ queryKey }) > 0
  await queries.cancelQueries({ queryKey })
  const before = queries.getQueryData<Data>(queryKey)
  if (before !== undefined) queries.setQueryData<Data>(queryKey, change(before))
  if (isAsked || before === undefined) void queries.invalidateQueries({ queryKey })
}

/** Marks, as a query's `meta`, what anybody may know: it is kept when the user has gone. */
export const publicQuery = { isPublic: true }

/**
 * Asks again every so often while the tab is seen; while it fails, after as long as it has failed so far. Hand it to
 * `refetchInterval`. Shared by key: however many parts of a page use a query, it is one poll.
 */
export const pollEvery =
  (seconds: number) =>
  ({ state }: { state: PollState }): number =>
    Math.min(longestPauseMs, Math.max(seconds * secondMs, state.status === 'error' ? failingMs(state) : 0))

interface PollState {
  status: string
  dataUpdatedAt: number
  errorUpdatedAt: number
  errorUpdateCount: number
}

/** How long it has failed; where there never was an answer, longer each time. */
const failingMs = ({ dataUpdatedAt, errorUpdatedAt, errorUpdateCount }: PollState): number =>
  dataUpdatedAt === 0 ? secondMs * 2 ** errorUpdateCount : errorUpdatedAt - dataUpdatedAt
