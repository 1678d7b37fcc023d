import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'

export type CatalogItem = Schemas['CatalogItem']
export type Module = Schemas['Module']

/** One module: what the catalog offers of it, and what is installed; at least one of both. */
export interface ModuleEntry {
  id: string
  name: string
  description: string
  offer?: CatalogItem | undefined
  installed?: Module | undefined
}

/** Something is done with a module that will be over soon. */
export const isUnderWay = ({ jobId }: Pick<Module, 'jobId'>): boolean => jobId !== undefined

/** A module that answers requests. */
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

/** Asks anew for whatever is shown of modules. The list first: by then nobody asks any more for one that is gone. */
export async function refreshModules(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['modules'] })
  await queries.invalidateQueries({ queryKey: ['module'] })
}

/** What can be installed and what is, in one list by name. */
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
