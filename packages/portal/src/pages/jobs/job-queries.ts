import { queryOptions } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', 'one', jobId],
    queryFn: () => unwrap(api.GET('/api/v1/jobs/{id}', { params: { path: { id: jobId } } })),
  })

/** Returns a function that finds the name of a node, or returns the id if the cluster no longer has the node. */
export const nodeNames =
  (cluster: Schemas['ClusterDetail'] | undefined) =>
  (nodeId: string): string =>
    cluster?.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId
