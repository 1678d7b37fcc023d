import { queryOptions, useQuery } from '@tanstack/react-query'
import { allPages, maxPageSize } from '../../api/all-pages.ts'
import { isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { clustersById } from '../../api/clusters.ts'
import { queries, setQueryData } from '../../api/query.ts'
import type { ClusterFilter } from './cluster-filter.ts'

export type Cluster = Schemas['ClusterDetail']
export type ClusterSummary = Schemas['ClusterSummary']
export type Site = Schemas['Site']

export const clusterQuery = (clusterId: string) =>
  queryOptions({
    queryKey: ['clusters', 'one', clusterId],
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id: clusterId } }, signal })),
  })

/** Reads a cluster. Without an id, the query is disabled. */
export const useCluster = (clusterId: string | undefined) =>
  useQuery({ ...clusterQuery(clusterId ?? ''), enabled: clusterId !== undefined, staleTime: 30_000, retry: false })

/** Key prefix of all cluster lists. */
export const clusterListKey = ['clusters', 'list']

export const sitesQuery = queryOptions({
  queryKey: ['sites'],
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/sites', { signal }))).items,
  staleTime: 30_000,
})

export const isNotFound = (error: unknown): boolean => isApiError(error, 'cluster_not_found')

/** Creates a site and adds it to the cached list. */
export async function createSite(name: string): Promise<Site> {
  const site = await unwrap(api.POST('/api/v1/sites', { body: { name } }))
  await setQueryData(sitesQuery.queryKey, (sites) => [site, ...sites.filter(({ id }) => id !== site.id)])
  return site
}

export const typeNames: Record<Cluster['type'], string> = { Hypervisor: 'Hypervisor', CloudLocal: 'Cloud-local' }

interface NameRequest {
  ids: Set<string>
  names: Promise<Map<string, string>>
}

let pendingRequest: NameRequest | undefined

// All ids that are added before the timer fires are loaded by one request.
function startRequest(): NameRequest {
  const ids = new Set<string>()
  const load = async () => {
    await new Promise((resolve) => setTimeout(resolve))
    if (pendingRequest?.ids === ids) pendingRequest = undefined
    return new Map((await clustersById([...ids])).map(({ id, name }) => [id, name]))
  }
  return { ids, names: load() }
}

async function nameOf(id: string): Promise<string | null> {
  if (pendingRequest === undefined || pendingRequest.ids.size >= maxPageSize) pendingRequest = startRequest()
  pendingRequest.ids.add(id)
  return (await pendingRequest.names).get(id) ?? null
}

/** Key prefix of all cluster names. */
export const clusterNameKey = ['clusters', 'name']

/**
 * Returns the name of a cluster, or undefined until it is loaded and for removed clusters. One request loads up to 100
 * names that are needed at the same time.
 */
export const useClusterName = (clusterId: string | undefined): string | undefined =>
  useQuery({
    queryKey: [...clusterNameKey, clusterId],
    enabled: clusterId !== undefined,
    queryFn: () => nameOf(clusterId ?? ''),
    staleTime: 60_000,
    retry: false,
  }).data ?? undefined

/** Returns the name that was last loaded, or the id. */
export const knownName = (clusterId: string): string =>
  queries.getQueryData<string | null>([...clusterNameKey, clusterId]) ?? clusterId

/** Returns all clusters that match a filter, and caches their names. */
export async function fetchMatchingClusters(filter: ClusterFilter): Promise<ClusterSummary[]> {
  const foundClusters = await allPages((paging) =>
    unwrap(api.GET('/api/v1/clusters', { params: { query: { ...filter, ...paging } } })),
  )
  for (const { id, name } of foundClusters) queries.setQueryData([...clusterNameKey, id], name)
  return [...new Map(foundClusters.map((cluster) => [cluster.id, cluster])).values()]
}

export const fetchExistingIds = async (ids: readonly string[]): Promise<Set<string>> =>
  new Set((await clustersById(ids)).map(({ id }) => id))
