import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'

/** The most that one request asks for. */
const most = 100

/** Clusters that the next request asks for, and what it will have told of them by id. */
interface Round {
  ids: Set<string>
  names: Promise<Map<string, string>>
}

let next: Round | undefined

/** Begins a round: whoever asks before the browser comes to its timers asks in it. */
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

/** What every name of a cluster begins its key with. */
export const clusterNameKey = ['clusters', 'name']

/** How a cluster is called; undefined until it is known, and where it is gone. A list of rows asks once for all of them. */
export const useClusterName = (clusterId: string | undefined): string | undefined =>
  useQuery({
    queryKey: [...clusterNameKey, clusterId],
    enabled: clusterId !== undefined,
    queryFn: () => nameOf(clusterId ?? ''),
    staleTime: 60_000,
    retry: false,
  }).data ?? undefined
