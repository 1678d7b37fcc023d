import type { paths } from '@platform/contract/openapi-types'
import { parseSelector, SelectorError } from '@platform/contract/selector'
import { InvalidArgumentError } from 'commander'
import { isApiRejection, unwrap } from './api/unwrap.ts'
import type { Api, Schemas } from './api/client.ts'
import { type Extent, maxPageSize, pagesOf, type Paging, readList } from './api/pages.ts'
import { CliError } from './exit.ts'
import { cellOf } from './print/table.ts'

export type Cluster = Schemas['ClusterSummary']
export type NamedCluster = Pick<Cluster, 'id' | 'name'>
export type ClusterFilter = Partial<Pick<Cluster, 'status' | 'type'>> & { selector?: string; sort?: Sort }
type Sort = NonNullable<NonNullable<paths['/api/v1/clusters']['get']['parameters']['query']>['sort']>

const pageReader = (api: Api, filter: ClusterFilter) => (paging: Paging) =>
  unwrap(api.GET('/api/v1/clusters', { params: { query: { ...filter, ...paging } } }))

export const listClusters = (api: Api, extent: Extent, filter: ClusterFilter = {}) =>
  readList(extent, pageReader(api, filter))

const isId = (text: string): boolean => /^clus_[0-9a-hjkmnp-tv-z]{26}$/.test(text)

export async function findCluster(api: Api, nameOrId: string): Promise<Cluster> {
  const [cluster] = await findClusters(api, [nameOrId])
  return cluster ?? throwUnknownCluster(nameOrId)
}

/**
 * Finds clusters by name or id, in the given order and without duplicates. Names are looked up in the list, which is
 * read until all are found. Throws `CliError` for unknown and ambiguous names.
 */
export async function findClusters(api: Api, namesOrIds: readonly string[]): Promise<Cluster[]> {
  const [onlyName] = namesOrIds
  if (namesOrIds.length === 1 && onlyName !== undefined && isId(onlyName)) return [await clusterById(api, onlyName)]
  const matches = new ClusterMatches(namesOrIds)
  for await (const page of pagesOf(pageReader(api, {}))) {
    page.forEach((cluster) => matches.add(cluster))
    if (matches.isComplete) break
  }
  // A new cluster may not be in the list yet, but can be read by id.
  const foundClusters = namesOrIds.map(
    (one) => matches.clusterOf(one) ?? (isId(one) ? clusterById(api, one) : undefined),
  )
  const clusters = await Promise.all(
    foundClusters.map(async (cluster, index) => (await cluster) ?? throwUnknownCluster(namesOrIds[index])),
  )
  return [...new Map(clusters.map((cluster) => [cluster.id, cluster])).values()]
}

export const findExistingIds = async (api: Api, ids: readonly string[]): Promise<Set<string>> =>
  new Set((await readByIds(api, ids)).map(({ id }) => id))

/** Returns the names of the clusters that still exist, by their ids. */
export const namesOf = async (api: Api, ids: readonly string[]): Promise<Map<string, string>> =>
  new Map((await readByIds(api, ids)).map(({ id, name }) => [id, name]))

async function readByIds(api: Api, ids: readonly string[]): Promise<Cluster[]> {
  const clusters: Cluster[] = []
  for (let from = 0; from < ids.length; from += maxPageSize) {
    const query = { ids: ids.slice(from, from + maxPageSize).join(), pageSize: maxPageSize }
    clusters.push(...(await unwrap(api.GET('/api/v1/clusters', { params: { query } }))).items)
  }
  return clusters
}

/** Returns the names of clusters by id. Without the permission to read clusters, returns no names. */
export async function readClusterNames(api: Api, ids: readonly string[]): Promise<Map<string, string>> {
  try {
    return await namesOf(api, [...new Set(ids)])
  } catch (error) {
    if (!isApiRejection(error, 'forbidden')) throw error
    return new Map()
  }
}

/** Returns the clusters that match a selector. */
export async function selectedClusters(api: Api, selector: string): Promise<NamedCluster[]> {
  const body = { target: { selector }, includeIds: true }
  const { clusterIds = [] } = await unwrap(api.POST('/api/v1/targets/resolve', { body }))
  const names = await namesOf(api, clusterIds)
  // A new cluster may not be in the list yet.
  return clusterIds.map((id) => ({ id, name: names.get(id) ?? id }))
}

/** Finds a site by id or by name (case-insensitive) and returns its id. Throws `CliError` if there is none. */
export async function siteIdOf(api: Api, nameOrId: string): Promise<string> {
  const { items } = await unwrap(api.GET('/api/v1/sites'))
  const site = items.find(({ id, name }) => id === nameOrId || name.toLowerCase() === nameOrId.toLowerCase())
  if (site === undefined)
    throw new CliError('refused', `No site named ${cellOf(nameOrId)}. See: plat site list, plat site create`)
  return site.id
}

/** Parses labels of the form `key=value`. Throws `CliError` if a label does not have this form or its key is empty. */
export function parseLabels(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf('=')
      if (equals < 1) throw new CliError('usage', `--label must be key=value, not ${cellOf(word)}.`)
      return [word.slice(0, equals), word.slice(equals + 1)]
    }),
  )
}

export function parseSelectorOption(text: string): string {
  try {
    parseSelector(text)
    return text
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    throw new InvalidArgumentError(`\n  ${text}\n  ${' '.repeat(error.position - 1)}^ ${error.reason}`)
  }
}

const clusterById = (api: Api, id: string): Promise<Cluster> =>
  unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } }))

function throwUnknownCluster(nameOrId = ''): never {
  throw new CliError('refused', `No cluster named ${cellOf(nameOrId)}. See: plat cluster list`)
}

class ClusterMatches {
  readonly #clustersByName: Map<string, Cluster[]>

  constructor(names: readonly string[]) {
    this.#clustersByName = new Map(names.map((one) => [one.toLowerCase(), []]))
  }

  add(cluster: Cluster): void {
    for (const key of new Set([cluster.id, cluster.name.toLowerCase()])) {
      const clusters = this.#clustersByName.get(key)
      if (clusters?.every(({ id }) => id !== cluster.id)) clusters.push(cluster)
    }
  }

  get isComplete(): boolean {
    return [...this.#clustersByName.values()].every((clusters) => clusters.length > 0)
  }

  clusterOf(nameOrId: string): Cluster | undefined {
    const clusters = this.#clustersByName.get(nameOrId.toLowerCase()) ?? []
    if (clusters.length > 1) {
      const idsText = clusters.map(({ id, name }) => `${id} (${cellOf(name)})`).join(', ')
      throw new CliError('usage', `${cellOf(nameOrId)} matches several clusters: ${idsText}. Use the id.`)
    }
    return clusters[0]
  }
}
