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

// Every process observes installations and removals within this time.
const cacheMs = 1000
/**
 * Time for which an unknown path is cached, in milliseconds. It is short, because the module may just have been
 * installed, and not zero, because requests for random paths must not each read the store.
 */
export const negativeCacheMs = 100

interface CachedRoutes {
  routes: Promise<ModuleRoutes>
  readAtMs: number
}

let cachedRoutes: CachedRoutes | undefined

// Returns routes that were read within `maxAgeMs`. Concurrent requests share one read.
function routesWithin(maxAgeMs: number, mayBeStale: boolean): Promise<ModuleRoutes> {
  // The absolute value protects against a clock that is set back.
  const isFresh = cachedRoutes !== undefined && Math.abs(now() - cachedRoutes.readAtMs) < maxAgeMs
  if (cachedRoutes === undefined || !isFresh) {
    const read = { routes: readRoutes({ mayBeStale }), readAtMs: now() }
    cachedRoutes = read
    read.routes.catch(() => {
      if (cachedRoutes === read) cachedRoutes = undefined
    })
  }
  return cachedRoutes.routes
}

/** Returns the owner of a path, if any. In each process, known paths cause at most one read of the store per second. */
export async function lookUpRouteOwner(path: string): Promise<RouteOwner | undefined> {
  if (!isModulePath(path)) return undefined
  return findRouteOwner(await routesWithin(cacheMs, true), path) ?? refreshRouteOwner(path)
}

/** Returns the owner of a path, if any. Reads the store unless the last read is newer than `negativeCacheMs`. */
export const refreshRouteOwner = async (path: string): Promise<RouteOwner | undefined> =>
  findRouteOwner(await routesWithin(negativeCacheMs, false), path)
