import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { pollEvery } from '../../api/query.ts'

export type UpdateCheck = Schemas['UpdateCheck']
export type JobSummary = Schemas['JobSummary']

const minuteMs = 60_000
const maxShownJobs = 8

/** The result of an update check. It is not polled, because each check reads the release repository. */
export const checkQuery = queryOptions({
  queryKey: ['updates', 'check'],
  queryFn: () => unwrap(api.GET('/api/v1/platform/updates/check')),
  staleTime: minuteMs,
  // The platform has already retried if the repository is unreachable.
  retry: (failureCount, error) =>
    failureCount < 3 &&
    error instanceof ApiError &&
    error.isTransient &&
    !isApiError(error, 'release_source_unreachable'),
})

const jobsOf = async (type: 'PlatformUpdate' | 'PlatformRollback'): Promise<JobSummary[]> =>
  (await unwrap(api.GET('/api/v1/jobs', { params: { query: { type, pageSize: maxShownJobs } } }))).items

const isRunning = ({ completedAt }: JobSummary): boolean => completedAt === undefined

// Other administrators may start an update, so the history is polled.
const historyQuery = queryOptions({
  queryKey: ['updates', 'history'],
  queryFn: async () => {
    const jobs = (await Promise.all([jobsOf('PlatformUpdate'), jobsOf('PlatformRollback')])).flat()
    return jobs.toSorted((one, other) => other.createdAt.localeCompare(one.createdAt)).slice(0, maxShownJobs)
  },
  refetchInterval: pollEvery(10),
})

export function useHistory() {
  const query = useQuery(historyQuery)
  const runningJob = query.data?.find(isRunning)
  return { query, runningJob }
}
