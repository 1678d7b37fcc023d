import { queryOptions, useQuery } from '@tanstack/react-query'
import { navigationQuery } from '../../api/account.ts'
import { ApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { fetchInSession } from '../../api/session.ts'

export type CatalogItem = Schemas['CatalogItem']
export type Module = Schemas['Module']

/** A module that is in the catalog, installed, or both. */
export interface ModuleEntry {
  id: string
  name: string
  description: string
  release?: CatalogItem | undefined
  installed?: Module | undefined
}

/** Whether an installation, upgrade or removal of the module is running. */
export const hasOperation = ({ jobId }: Pick<Module, 'jobId'>): boolean => jobId !== undefined

/** Whether the module serves requests, including during an upgrade. */
export const isServing = ({ state }: Pick<Module, 'state'>): boolean => state === 'Running' || state === 'Upgrading'

const [soonSeconds, listSeconds, catalogSeconds] = [2, 10, 30]

export const installedQuery = queryOptions({
  queryKey: ['modules', 'installed'],
  queryFn: () => unwrap(api.GET('/api/v1/modules')),
  refetchInterval: (query) =>
    pollEvery(query.state.data?.items.some(hasOperation) === true ? soonSeconds : listSeconds)(query),
})

export const organisationModulesQuery = queryOptions({
  queryKey: ['modules', 'organisation'],
  queryFn: () => unwrap(api.GET('/api/v1/organisation/modules')),
  refetchInterval: pollEvery(listSeconds),
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
      return pollEvery(data !== undefined && hasOperation(data) ? soonSeconds : listSeconds)(query)
    },
  })

/** Reads the modules of the catalog and the installed modules into one list, sorted by name. */
export function useModules() {
  const catalog = useQuery(catalogQuery)
  const installed = useQuery(installedQuery)
  return { catalog, installed, entries: entriesOf(catalog.data?.items ?? [], installed.data?.items ?? []) }
}

function entriesOf(releases: readonly CatalogItem[], modules: readonly Module[]): ModuleEntry[] {
  const releaseById = new Map(releases.map((release) => [release.id, release]))
  const moduleById = new Map(modules.map((module) => [module.id, module]))
  const ids = new Set([...moduleById.keys(), ...releaseById.keys()])
  const entries = [...ids].flatMap((id): ModuleEntry[] => {
    const [installed, release] = [moduleById.get(id), releaseById.get(id)]
    const entry = installed ?? release
    return entry === undefined ? [] : [{ id, name: entry.name, description: entry.description, release, installed }]
  })
  return entries.toSorted((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id))
}

/** Returns the page of a module's first navigation entry, or undefined if the module has no entry. */
export function usePageOf({ id }: { id: string }): { moduleId: string; _splat: string } | undefined {
  const { data } = useQuery(navigationQuery)
  const route = data?.items.find(({ source }) => source === `module:${id}`)?.route
  const [, moduleId, rest = ''] = /^\/modules\/([^/]+)\/?(.*)$/.exec(route ?? '') ?? []
  return moduleId === undefined ? undefined : { moduleId, _splat: rest }
}

/**
 * Checks whether a module serves a page at a path. The check runs at every visit, because a frame can neither report
 * errors nor renew the session. Other responses of the module are shown in the frame.
 */
export const pageQuery = (path: string) =>
  queryOptions({
    queryKey: ['module-page', path],
    queryFn: () => checkPage(path),
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })

async function checkPage(path: string): Promise<true> {
  if ((await request(path, 'HEAD')).ok) return true
  // Only a response to GET has a body with the reason.
  const response = await request(path, 'GET')
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  if (response.ok || !isJson) return true
  throw new ApiError(response.status, await response.json().catch(() => undefined), response.headers)
}

const request = (path: string, method: string): Promise<Response> =>
  fetchInSession(new Request(location.origin + path, { method, headers: { accept: 'text/html' } })).catch(
    (cause: unknown) => {
      throw ApiError.unreachable(cause)
    },
  )
