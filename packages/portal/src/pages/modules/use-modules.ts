import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'

export type CatalogItem = Schemas['CatalogItem']
export type Module = Schemas['Module']

/** A module in the catalog, installed, or both. */
export interface ModuleEntry {
  id: string
  name: string
  description: string
  offer?: CatalogItem | undefined
  installed?: Module | undefined
}

/** An operation on the module is running. */
export const isUnderWay = ({ jobId }: Pick<Module, 'jobId'>): boolean => jobId !== undefined

/** The module serves requests. */
export const isServing = ({ state }: Pick<Module, 'state'>): boolean => state === 'Running' || state === 'Upgrading'

const [soonSeconds, listSeconds, catalogSeconds] = [2, 10, 30]

const installedQuery = queryOptions({
  queryKey: ['modules', 'installed'],
  queryFn: () => unwrap(api.GET('/api/v1/modules')),
  refetchInterval: (query) =>
    pollEvery(query.state.data?.items.some(isUnderWay) === true ? soonSeconds : listSeconds)(query),
})

export const catalogQuery = queryOptions({
  queryKey: ['modules', 'catalog'],
  queryFn: () => unwrap(api.GET('/api/v1/modules/catalog')),
  refetchInterval: pollEvery(catalogSeconds),
})

export const moduleQuery = (id: string) =>
  queryOptions({
    queryKey: ['module', id],
    queryFn: () => unwrap(api.GET('/api/v1/modules/{id}', { params: { path: { id } } })),
    refetchInterval: (query) => {
      const { data } = query.state
      return pollEvery(data !== undefined && isUnderWay(data) ? soonSeconds : listSeconds)(query)
    },
  })

/** Catalog and installed modules in one list, by name. */
export function useModules() {
  const catalog = useQuery(catalogQuery)
  const installed = useQuery(installedQuery)
  return { catalog, installed, entries: entriesOf(catalog.data?.items ?? [], installed.data?.items ?? []) }
}

function entriesOf(offers: readonly CatalogItem[], modules: readonly Module[]): ModuleEntry[] {
  const offered = new Map(offers.map((offer) => [offer.id, offer]))
  const present = new Map(modules.map((module) => [module.id, module]))
  const ids = new Set([...present.keys(), ...offered.keys()])
  const entries = [...ids].flatMap((id): ModuleEntry[] => {
    const [installed, offer] = [present.get(id), offered.get(id)]
    const named = installed ?? offer
    return named === undefined ? [] : [{ id, name: named.name, description: named.description, offer, installed }]
  })
  return entries.toSorted((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id))
}
