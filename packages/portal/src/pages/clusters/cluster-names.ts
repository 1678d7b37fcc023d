import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

/** The most ids of one request. */
const most = 100

/** Ids that the next request reads, and its result by id. */
interface Round {
  ids: Set<string>
  names: Promise<Map<string, string>>
}

let next: Round | undefined

/** Starts a request: calls before the next timer join it. */
function begin(): Round {
  const ids = new Set<string>()
  const tell = async () => {
    await new Promise((resolve) => setTimeout(resolve))
    if (next?.ids === ids) next = undefined
    const query = { ids: [...ids].join(','), pageSize: most }
    const { items } = await unwrap(api.GET('/api/v1/clusters', { params: { query } }))
    return new Map(items.map(({ id, name }) => [id, name]))
  }
  return { ids, names: tell() }
}

async function nameOf(id: string): Promise<string | null> {
  if (next === undefined || next.ids.size >= most) next = begin()
  next.ids.add(id)
  return (await next.names).get(id) ?? null
}

/** The key prefix of all cluster names. */
export const clusterNameKey = ['clusters', 'name']

/** The name of a cluster; undefined until loaded, and for removed clusters. All rows of a list share one request. */
export const useClusterName = (clusterId: string | undefined): string | undefined =>
  useQuery({
    queryKey: [...clusterNameKey, clusterId],
    enabled: clusterId !== undefined,
    queryFn: () => nameOf(clusterId ?? ''),
    staleTime: 60_000,
    retry: false,
  }).data ?? undefined
