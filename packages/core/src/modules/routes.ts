import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get, type Item, type WriteItem, upsert } from '../db/table.ts'
import { limitReachedError } from '../error.ts'
import { Deployment } from './deployment.ts'

/**
 * One item contains the API paths and deployments of all modules, so that a proxied request needs one read and
 * concurrent installations cannot reserve the same path. A path is reserved when an installation is accepted, and
 * served once its reservation has a deployment.
 */

const RouteReservation = z.object({
  apiBasePath: z.string(),
  deployment: Deployment.optional(),
  subscriptions: z.array(z.string()).optional(),
  publisher: z.string().optional(),
  /** The permissions that the module requires. Of a caller's permissions, only these are passed to the module. */
  permissions: z.array(z.string()).optional(),
})
export type RouteReservation = z.infer<typeof RouteReservation>

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

export const readRoutes = async (options: { mayBeStale?: boolean } = {}): Promise<ModuleRoutes> =>
  parseRoutes(await get(keys.moduleRoutes(), options))

/** The write fails if the reservations were changed since they were read. */
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

/** An item has at most 400 KiB; the remaining space is for subscriptions of modules that are being installed. */
const maxReservationBytes = 330_000

export function checkCapacity({ reservations }: ModuleRoutes): void {
  const usedBytes = Buffer.byteLength(JSON.stringify([...reservations]))
  if (usedBytes >= maxReservationBytes)
    throw limitReachedError(maxReservationBytes, 'bytes of paths and subscribed events of all modules', usedBytes)
}

export function findRouteConflict(
  { reservations }: ModuleRoutes,
  moduleId: string,
  apiBasePath: string,
): string | undefined {
  const otherReservations = [...reservations].filter(([id]) => id !== moduleId)
  return otherReservations.find(
    ([, reservation]) => isUnder(reservation.apiBasePath, apiBasePath) || isUnder(apiBasePath, reservation.apiBasePath),
  )?.[0]
}

/** Compares whole path segments. */
export const isUnder = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)

// These paths belong to the platform, even if a reservation names one.
const platformPaths = /^\/api\/(?:v[0-9]+|modules)(?:\/|$)/

export const isModulePath = (path: string): boolean =>
  path.startsWith('/modules/') || (path.startsWith('/api/') && !platformPaths.test(path))

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
