import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { summaryQuery } from '../../../api/account.ts'
import { api, unwrap, type Schemas } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'
import { clusterStatuses, noClusters } from '../../clusters/cluster-filter.ts'

export interface WidgetProps {
  /** A label selector. The widget shows only the clusters that match it. */
  selector?: string | undefined
}

const countsOf = async (selector: string): Promise<Schemas['ClusterCounts']> => {
  const counts = { ...noClusters }
  const count = async (status: (typeof clusterStatuses)[number]) => {
    const query = { selector, status, pageSize: 1 }
    counts[status] = (await unwrap(api.GET('/api/v1/clusters', { params: { query } }))).totalCount
  }
  await Promise.all(clusterStatuses.map(count))
  return counts
}

/** Reads the number of clusters with each status. Without a selector, the shared summary has them. */
export function useClusterCounts(selector: string | undefined): UseQueryResult<Schemas['ClusterCounts']> {
  const summary = useQuery({ ...summaryQuery, select: ({ clusters }) => clusters?.byStatus ?? noClusters })
  const selected = useQuery({
    queryKey: ['clusters', 'counts', selector],
    enabled: selector !== undefined,
    queryFn: () => countsOf(selector ?? ''),
    placeholderData: keepPreviousData,
    // Each count reads the labels of all clusters.
    staleTime: 60_000,
    refetchInterval: pollEvery(300),
  })
  return selector === undefined ? summary : selected
}
