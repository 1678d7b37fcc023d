import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../../api/client.ts'
import { clusterQuery } from '../clusters/cluster-queries.ts'

/** A cluster of which nothing is known but its id: it may be gone by now. */
export const useCluster = (clusterId: string | undefined) =>
  useQuery({ ...clusterQuery(clusterId ?? ''), enabled: clusterId !== undefined, staleTime: 30_000, retry: false })

/** How a node is called; by its id where the cluster no longer has it. */
export const nodeNames =
  (cluster: Schemas['ClusterDetail'] | undefined) =>
  (nodeId: string): string =>
    cluster?.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId
