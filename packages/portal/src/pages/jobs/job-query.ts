import { queryOptions } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', 'one', jobId],
    queryFn: () => unwrap(api.GET('/api/v1/jobs/{id}', { params: { path: { id: jobId } } })),
  })
