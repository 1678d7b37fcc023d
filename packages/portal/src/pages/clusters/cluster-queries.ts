import { queryOptions } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { setQueryData } from '../../api/query.ts'

export type Cluster = Schemas['ClusterDetail']
export type ClusterSummary = Schemas['ClusterSummary']
export type Site = Schemas['Site']

export const clusterQuery = (clusterId: string) =>
  queryOptions({
    queryKey: ['clusters', 'one', clusterId],
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id: clusterId } }, signal })),
  })

/** The key prefix of all cluster lists. */
export const clusterListKey = ['clusters', 'list']

export const sitesQuery = queryOptions({
  queryKey: ['sites'],
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/sites', { signal }))).items,
  staleTime: 30_000,
})

/** Whether the cluster does not exist. */
export const isGone = (error: unknown): boolean => isApiError(error, 'cluster_not_found')

/** Creates a site and adds it to the loaded list. */
export async function createSite(name: string): Promise<Site> {
  const site = await unwrap(api.POST('/api/v1/sites', { body: { name } }))
  await setQueryData(sitesQuery.queryKey, (known) => [site, ...known.filter(({ id }) => id !== site.id)])
  return site
}

export const typeNames: Record<Cluster['type'], string> = { Hypervisor: 'Hypervisor', CloudLocal: 'Cloud-local' }
