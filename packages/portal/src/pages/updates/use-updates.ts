import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { pollEvery } from '../../api/query.ts'

export type UpdateCheck = Schemas['UpdateCheck']
export type JobSummary = Schemas['JobSummary']

const minuteMs = 60_000
const shownJobs = 8

/** What there is to update to. Each look reads the release repository: nobody looks by the clock. */
export const checkQuery = queryOptions({
  queryKey: ['updates', 'check'],
  queryFn: () => unwrap(api.GET('/api/v1/platform/updates/check')),
  staleTime: minuteMs,
  // A repository that is away stays so for a while, and the platform itself has waited for it.
  retry: (failures, error) =>
    failures < 3 && error instanceof ApiError && error.isPassing && !isApiError(error, 'release_source_unreachable'),
})

const jobsOf = async (type: 'PlatformUpdate' | 'PlatformRollback'): Promise<JobSummary[]> =>
  (await unwrap(api.GET('/api/v1/jobs', { params: { query: { type, pageSize: shownJobs } } }))).items

const runs = ({ completedAt }: JobSummary): boolean => completedAt === undefined

/** The last updates and ways back, newest first. Another administrator may begin one. */
const historyQuery = queryOptions({
  queryKey: ['updates', 'history'],
  queryFn: async () => {
    const jobs = (await Promise.all([jobsOf('PlatformUpdate'), jobsOf('PlatformRollback')])).flat()
    return jobs.toSorted((one, other) => other.createdAt.localeCompare(one.createdAt)).slice(0, shownJobs)
  },
  refetchInterval: pollEvery(10),
})

/** The last updates, and the one to look at: what runs, else what was last. */
export function useHistory() {
  const query = useQuery(historyQuery)
  const running = query.data?.find(runs)
  return { query, running }
}
