import { now } from '@platform/core/clock'
import {
  isModulePath,
  type RouteReservation,
  type ModuleRoutes,
  findRouteOwner,
  readRoutes,
} from '@platform/core/modules/routes'

/** The module that owns a path, with its reservation. */
export interface RouteOwner {
  moduleId: string
  claim: RouteReservation
}

// Every process notices installations and removals within this time.
const cacheMs = 1000
/**
 * Time for which an unknown path is cached, in milliseconds. Short, because the module may just have been installed;
 * not zero, because probing of paths must not read the store for each request.
 */
export const negativeCacheMs = 100

interface CachedRoutes {
  routes: Promise<ModuleRoutes>
  atMs: number
}

let cachedRoutes: CachedRoutes | undefined

// Concurrent requests share one read.
function routesWithin(ageMs: number, stale: boolean): Promise<ModuleRoutes> {
  // The absolute value protects against a clock that is set back.
  const isFresh = cachedRoutes !== undefined && Math.abs(now() - cachedRoutes.atMs) < ageMs
  if (cachedRoutes === undefined || !isFresh) {
    const read = { routes: readRoutes({ stale }), atMs: now() }
    cachedRoutes = read
    read.routes.catch(() => {
      if (cachedRoutes === read) cachedRoutes = undefined
    })
  }
  return cachedRoutes.routes
}

/** The owner of a path, or undefined. Known paths cause at most one read of the store per second. */
export async function lookUpRouteOwner(path: string): Promise<RouteOwner | undefined> {
  if (!isModulePath(path)) return undefined
  return findRouteOwner(await routesWithin(cacheMs, true), path) ?? refreshRouteOwner(path)
}

/** The owner of a path, read again unless the last read is newer than `negativeCacheMs`. */
export const refreshRouteOwner = async (path: string): Promise<RouteOwner | undefined> =>
  findRouteOwner(await routesWithin(negativeCacheMs, false), path)
