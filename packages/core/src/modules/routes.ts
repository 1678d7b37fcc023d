import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get, type Item, type WriteItem, upsert } from '../db/table.ts'
import { Deployment } from './record.ts'
import { isUnder } from './path-prefix.ts'

/**
 * API paths of modules and their deployments in one item, so that a proxied request is one read and concurrent
 * installations cannot reserve the same path. Routes are reserved when the manifest is accepted, and served once
 * published.
 */

const Claim = z.object({
  apiBasePath: z.string(),
  deployment: Deployment.optional(),
  /** Subscribed event types, for event delivery. */
  subscriptions: z.array(z.string()).optional(),
})
export type RouteReservation = z.infer<typeof Claim>

/** All reservations by module id, and the revision for conditional changes. */
export interface ModuleRoutes {
  revision: number
  claims: ReadonlyMap<string, RouteReservation>
}

const attribute = (moduleId: string): string => `module:${moduleId}`

export function parseRoutes(item: Item | undefined): ModuleRoutes {
  const claims = Object.entries(item ?? {})
    .filter(([name]) => name.startsWith('module:'))
    .map(([name, value]) => [name.slice('module:'.length), Claim.parse(JSON.parse(String(value)))] as const)
  return { revision: Number(item?.['revision'] ?? 0), claims: new Map(claims) }
}

/** The reservations. One call; `stale` for serving requests. */
export const readRoutes = async (options: { stale?: boolean } = {}): Promise<ModuleRoutes> =>
  parseRoutes(await get(keys.moduleRoutes(), options))

/** Sets or removes a module's reservation. Fails if the reservations have changed since they were read. */
export const reserveRoutesWrite = (
  { revision }: ModuleRoutes,
  moduleId: string,
  claim: RouteReservation | undefined,
): WriteItem =>
  upsert(
    keys.moduleRoutes(),
    {
      set: { revision: revision + 1, ...(claim && { [attribute(moduleId)]: JSON.stringify(claim) }) },
      ...(claim === undefined && { remove: [attribute(moduleId)] }),
    },
    revision === 0 ? { revision: { absent: true } } : { revision: { is: revision } },
  )

/** An item holds 400 KB. The rest is for subscriptions of modules being installed. */
const claimsBytes = 330_000

/** Whether the reservations have room for another module. */
export const hasCapacity = ({ claims }: ModuleRoutes): boolean =>
  Buffer.byteLength(JSON.stringify([...claims])) < claimsBytes

/** The module with a conflicting API path. */
export function findRouteConflict({ claims }: ModuleRoutes, moduleId: string, apiBasePath: string): string | undefined {
  const others = [...claims].filter(([id]) => id !== moduleId)
  return others.find(
    ([, claim]) => isUnder(claim.apiBasePath, apiBasePath) || isUnder(apiBasePath, claim.apiBasePath),
  )?.[0]
}

// Paths of the platform itself, whatever a reservation says.
const reserved = /^\/api\/(?:v[0-9]+|modules)(?:\/|$)/

/** Whether a path can belong to a module. */
export const isModulePath = (path: string): boolean =>
  path.startsWith('/modules/') || (path.startsWith('/api/') && !reserved.test(path))

/** The module of a request: `/modules/<id>…`, or by API path. Undefined if none serves it. */
export function findRouteOwner(
  { claims }: ModuleRoutes,
  path: string,
): { moduleId: string; claim: RouteReservation } | undefined {
  if (!isModulePath(path)) return undefined
  const [, area, name = ''] = path.split('/')
  const owner =
    area === 'modules'
      ? ([name, claims.get(name)] as const)
      : [...claims].find(([, { apiBasePath }]) => apiBasePath.startsWith('/api/') && isUnder(path, apiBasePath))
  const [moduleId, claim] = owner ?? []
  return moduleId !== undefined && claim !== undefined ? { moduleId, claim } : undefined
}
