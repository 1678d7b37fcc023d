import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { clusterQuery } from '../clusters/cluster-queries.ts'

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', 'one', jobId],
    queryFn: () => unwrap(api.GET('/api/v1/jobs/{id}', { params: { path: { id: jobId } } })),
  })

/** The cluster of a job. The data is undefined if the cluster was removed. */
export const useCluster = (clusterId: string | undefined) =>
  useQuery({ ...clusterQuery(clusterId ?? ''), enabled: clusterId !== undefined, staleTime: 30_000, retry: false })

/** Returns a function that finds the name of a node, or returns the id if the cluster no longer has the node. */
export const nodeNames =
  (cluster: Schemas['ClusterDetail'] | undefined) =>
  (nodeId: string): string =>
    cluster?.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId
