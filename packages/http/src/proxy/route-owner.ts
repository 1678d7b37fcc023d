import { now } from '@platform/core/clock'
import {
  isModulePath,
  type RouteReservation,
  type ModuleRoutes,
  findRouteOwner,
  readRoutes,
} from '@platform/core/modules/routes'

/** The module that owns a path. */
export interface RouteOwner {
  moduleId: string
  claim: RouteReservation
}

/** Every process learns of installs and removals within this time. */
const cacheMs = 1000
/** A path that is unknown may have been installed a moment ago, but probing paths must not cost one call each. */
export const negativeCacheMs = 100

interface CachedRoutes {
  routes: Promise<ModuleRoutes>
  atMs: number
}

let last: CachedRoutes | undefined

/** The reservations, read at most this long ago. Concurrent requests share one call. */
function routesWithin(ageMs: number, stale: boolean): Promise<ModuleRoutes> {
  // The clock may be set back.
  const isFresh = last !== undefined && Math.abs(now() - last.atMs) < ageMs
  if (last === undefined || !isFresh) {
    const read = { routes: readRoutes({ stale }), atMs: now() }
    last = read
    read.routes.catch(() => {
      if (last === read) last = undefined
    })
  }
  return last.routes
}

/** The owner of a path, or undefined. At most one call; known paths cost one call per second. */
export async function lookUpRouteOwner(path: string): Promise<RouteOwner | undefined> {
  if (!isModulePath(path)) return undefined
  return findRouteOwner(await routesWithin(cacheMs, true), path) ?? refreshRouteOwner(path)
}

/** The current owner, except for the negative cache. At most one call, shared by concurrent requests. */
export const refreshRouteOwner = async (path: string): Promise<RouteOwner | undefined> =>
  findRouteOwner(await routesWithin(negativeCacheMs, false), path)
