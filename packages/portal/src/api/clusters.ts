import { maxPageSize } from './all-pages.ts'
import { api, type Schemas, unwrap } from './client.ts'

/** Returns the clusters with these ids that still exist. */
export async function clustersById(ids: readonly string[], signal?: AbortSignal): Promise<Schemas['ClusterSummary'][]> {
  const foundClusters: Schemas['ClusterSummary'][] = []
  for (let from = 0; from < ids.length; from += maxPageSize) {
    const query = { ids: ids.slice(from, from + maxPageSize).join(','), pageSize: maxPageSize }
    foundClusters.push(
      ...(await unwrap(api.GET('/api/v1/clusters', { params: { query }, ...(signal && { signal }) }))).items,
    )
  }
  return foundClusters
}
