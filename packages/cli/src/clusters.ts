import { unwrap } from './api/unwrap.ts'
import type { Api, Schemas } from './api/client.ts'
import { type Extent, pagesOf, readList } from './api/pages.ts'
import { CliError } from './exit.ts'
import { cellOf } from './print/table.ts'

/** A cluster as lists show it. */
export type Cluster = Schemas['ClusterSummary']
/** What clusters can be filtered by. */
export type ClusterFilter = Partial<Pick<Cluster, 'status' | 'type'>>

const pageReader = (api: Api, filter: ClusterFilter) => (paging: { page: number; pageSize: number }) =>
  unwrap(api.GET('/api/v1/clusters', { params: { query: { ...filter, ...paging } } }))

/** Clusters that fit a filter, newest first. */
export const listClusters = (api: Api, extent: Extent, filter: ClusterFilter = {}) =>
  readList(extent, pageReader(api, filter))

const isId = (text: string): boolean => /^clus_[0-9a-hjkmnp-tv-z]{26}$/.test(text)

/** One cluster by its name or identifier. */
export async function findCluster(api: Api, wanted: string): Promise<Cluster> {
  const [cluster] = await findClusters(api, [wanted])
  if (cluster === undefined) throw unknownCluster(wanted)
  return cluster
}

/**
 * Clusters by their names or identifiers, each once, in the order asked for. Reads one cluster by its identifier, or
 * else the list until every name is found. Throws `Failure` for a name that no cluster or more than one has.
 */
export async function findClusters(api: Api, wanted: readonly string[]): Promise<Cluster[]> {
  const [only] = wanted
  if (wanted.length === 1 && only !== undefined && isId(only)) return [await clusterById(api, only)]
  const known = new Matches(wanted)
  for await (const page of pagesOf(pageReader(api, {}))) {
    page.forEach((cluster) => known.add(cluster))
    if (known.isComplete) break
  }
  // A list may lag behind what was registered a moment ago.
  const found = wanted.map((one) => known.of(one) ?? (isId(one) ? clusterById(api, one) : undefined))
  const clusters = await Promise.all(
    found.map(async (cluster, index) => (await cluster) ?? unknownCluster(wanted[index])),
  )
  return [...new Map(clusters.map((cluster) => [cluster.id, cluster])).values()]
}

const clusterById = (api: Api, id: string): Promise<Cluster> =>
  unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } }))

function unknownCluster(wanted = ''): never {
  throw new CliError('refused', `No cluster has the name or identifier ${cellOf(wanted)}. See: plat cluster list`)
}

/** What was found so far for each name or identifier. */
class Matches {
  readonly #found: Map<string, Cluster[]>

  constructor(wanted: readonly string[]) {
    this.#found = new Map(wanted.map((one) => [one.toLowerCase(), []]))
  }

  add(cluster: Cluster): void {
    for (const key of new Set([cluster.id, cluster.name.toLowerCase()])) {
      const found = this.#found.get(key)
      if (found?.every(({ id }) => id !== cluster.id)) found.push(cluster)
    }
  }

  get isComplete(): boolean {
    return [...this.#found.values()].every((found) => found.length > 0)
  }

  of(wanted: string): Cluster | undefined {
    const found = this.#found.get(wanted.toLowerCase()) ?? []
    if (found.length > 1) {
      const ids = found.map(({ id, name }) => `${id} (${cellOf(name)})`).join(', ')
      throw new CliError('usage', `${cellOf(wanted)} means more than one cluster: ${ids}. Use the identifier.`)
    }
    return found[0]
  }
}
