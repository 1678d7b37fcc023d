import { queryOptions } from '@tanstack/react-query'
import { api, ask } from '../../api/client.ts'

/** One job, wherever it is shown. */
export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', 'one', jobId],
    queryFn: () => ask(api.GET('/api/v1/jobs/{id}', { params: { path: { id: jobId } } })),
  })
