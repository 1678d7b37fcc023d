import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get, type Item, type WriteItem, upsert } from '../db/table.ts'
import { Deployment } from './record.ts'

/**
 * API paths of modules and their deployments in one item, so that a proxied request takes one read and concurrent
 * installations cannot reserve the same path. A path is reserved when an installation is accepted, and served once it has
 * a deployment.
 */

const RouteReservation = z.object({
  apiBasePath: z.string(),
  deployment: Deployment.optional(),
  /** Subscribed event types, for event delivery. */
  subscriptions: z.array(z.string()).optional(),
})
export type RouteReservation = z.infer<typeof RouteReservation>

/** All reservations by module id, and the revision for conditional changes. */
export interface ModuleRoutes {
  revision: number
  reservations: ReadonlyMap<string, RouteReservation>
}

const attributeName = (moduleId: string): string => `module:${moduleId}`

export function parseRoutes(item: Item | undefined): ModuleRoutes {
  const reservations = Object.entries(item ?? {})
    .filter(([name]) => name.startsWith('module:'))
    .map(([name, value]) => [name.slice('module:'.length), RouteReservation.parse(JSON.parse(String(value)))] as const)
  return { revision: Number(item?.['revision'] ?? 0), reservations: new Map(reservations) }
}

/** The reservations. One call; `stale` for serving requests. */
export const readRoutes = async (options: { stale?: boolean } = {}): Promise<ModuleRoutes> =>
  parseRoutes(await get(keys.moduleRoutes(), options))

/** Sets or removes a module's reservation. Fails if the reservations were changed since they were read. */
export const reserveRoutesWrite = (
  { revision }: ModuleRoutes,
  moduleId: string,
  reservation: RouteReservation | undefined,
): WriteItem =>
  upsert(
    keys.moduleRoutes(),
    {
      set: { revision: revision + 1, ...(reservation && { [attributeName(moduleId)]: JSON.stringify(reservation) }) },
      ...(reservation === undefined && { remove: [attributeName(moduleId)] }),
    },
    revision === 0 ? { revision: { absent: true } } : { revision: { is: revision } },
  )

/** Of the 400 KB of an item; the rest is for subscriptions of modules being installed. */
const maxReservationBytes = 330_000

/** Whether the reservations have room for another module. */
export const hasCapacity = ({ reservations }: ModuleRoutes): boolean =>
  Buffer.byteLength(JSON.stringify([...reservations])) < maxReservationBytes

/** The module with a conflicting API path. */
export function findRouteConflict(
  { reservations }: ModuleRoutes,
  moduleId: string,
  apiBasePath: string,
): string | undefined {
  const others = [...reservations].filter(([id]) => id !== moduleId)
  return others.find(
    ([, reservation]) => isUnder(reservation.apiBasePath, apiBasePath) || isUnder(apiBasePath, reservation.apiBasePath),
  )?.[0]
}

/** Whether a path equals a base or is below it, by whole segments. */
export const isUnder = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)

// Paths of the platform, even if a reservation names one.
const platformPaths = /^\/api\/(?:v[0-9]+|modules)(?:\/|$)/

/** Whether a path can belong to a module. */
export const isModulePath = (path: string): boolean =>
  path.startsWith('/modules/') || (path.startsWith('/api/') && !platformPaths.test(path))

/** The module of a request, by id (`/modules/<id>…`) or by API path. */
export function findRouteOwner(
  { reservations }: ModuleRoutes,
  path: string,
): { moduleId: string; claim: RouteReservation } | undefined {
  if (!isModulePath(path)) return undefined
  const [, area, name = ''] = path.split('/')
  const owner =
    area === 'modules'
      ? ([name, reservations.get(name)] as const)
      : [...reservations].find(([, { apiBasePath }]) => apiBasePath.startsWith('/api/') && isUnder(path, apiBasePath))
  const [moduleId, reservation] = owner ?? []
  return moduleId !== undefined && reservation !== undefined ? { moduleId, claim: reservation } : undefined
}
