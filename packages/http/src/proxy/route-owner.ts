import { now } from '@platform/core/clock'
import {
  isModulePath,
  type RouteReservation,
  type ModuleRoutes,
  findRouteOwner,
  readRoutes,
} from '@platform/core/modules/routes'

/** The module that answers a path. */
export interface RouteOwner {
  moduleId: string
  claim: RouteReservation
}

/** What was installed or removed meanwhile is known to every process after so long. */
const believedMs = 1000
/** A path that is unknown may have been installed a moment ago; guessing paths must not become a call for each guess. */
export const negativeCacheMs = 100

interface Reading {
  routes: Promise<ModuleRoutes>
  atMs: number
}

let last: Reading | undefined

/** The claims, read not longer ago than this. Requests at the same moment share one call. */
function routesWithin(ageMs: number, stale: boolean): Promise<ModuleRoutes> {
  // Clocks are set back at times.
  const isFresh = last !== undefined && Math.abs(now() - last.atMs) < ageMs
  if (last === undefined || !isFresh) {
    const reading = { routes: readRoutes({ stale }), atMs: now() }
    last = reading
    reading.routes.catch(() => {
      if (last === reading) last = undefined
    })
  }
  return last.routes
}

/** Who answers a path; undefined where nobody does. At most one call, and for known paths one in a second. */
export async function lookUpRouteOwner(path: string): Promise<RouteOwner | undefined> {
  if (!isModulePath(path)) return undefined
  return findRouteOwner(await routesWithin(believedMs, true), path) ?? refreshRouteOwner(path)
}

/** Who answers it now, as far as was known a moment ago. At most one call, shared by those who ask at once. */
export const refreshRouteOwner = async (path: string): Promise<RouteOwner | undefined> =>
  findRouteOwner(await routesWithin(negativeCacheMs, false), path)
