import { useQuery } from '@tanstack/react-query'
import { api, ask, type Schemas } from '../../api/client.ts'

/** A cluster of which nothing is known but its id: it may be gone by now. */
export const useCluster = (clusterId: string | undefined) =>
  useQuery({
    queryKey: ['clusters', 'one', clusterId],
    enabled: clusterId !== undefined,
    queryFn: () => ask(api.GET('/api/v1/clusters/{id}', { params: { path: { id: clusterId ?? '' } } })),
    staleTime: 30_000,
    retry: false,
  })

/** How a node is called; by its id where the cluster no longer has it. */
export const nodeNames =
  (cluster: Schemas['ClusterDetail'] | undefined) =>
  (nodeId: string): string =>
    cluster?.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId
