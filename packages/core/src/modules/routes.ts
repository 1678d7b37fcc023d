import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get, type Item, type WriteItem, upsert } from '../db/table.ts'
import { Deployment } from './record.ts'
import { isUnder } from './path-prefix.ts'

/**
 * Which API paths belong to which module, and where it runs: one item, so that a request to a module reads one item, and
 * so that two installations cannot take the same path at once (D48). A module has claimed a path from the moment that its
 * manifest was found good; it is served from the moment that it is published.
 */

const Claim = z.object({
  apiBasePath: z.string(),
  deployment: Deployment.optional(),
  /** Types of events that it has subscribed to: what tells of an event asks for this one item too. */
  subscriptions: z.array(z.string()).optional(),
})
export type RouteReservation = z.infer<typeof Claim>

/** All claims by module id, and the revision that a change of them must name. */
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

/** The claims. One call; `stale` for whoever serves requests. */
export const readRoutes = async (options: { stale?: boolean } = {}): Promise<ModuleRoutes> =>
  parseRoutes(await get(keys.moduleRoutes(), options))

/** The step that sets a module's claim, or drops it; refused where the claims have changed since they were read. */
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

/** An item holds 400 KB. The rest is for what those modules subscribe to that are being installed. */
const claimsBytes = 330_000

/** Whether another module may be installed: the claims of all of them have to fit into one item. */
export const hasCapacity = ({ claims }: ModuleRoutes): boolean =>
  Buffer.byteLength(JSON.stringify([...claims])) < claimsBytes

/** The module that another one's path would collide with. */
export function findRouteConflict({ claims }: ModuleRoutes, moduleId: string, apiBasePath: string): string | undefined {
  const others = [...claims].filter(([id]) => id !== moduleId)
  return others.find(
    ([, claim]) => isUnder(claim.apiBasePath, apiBasePath) || isUnder(apiBasePath, claim.apiBasePath),
  )?.[0]
}

// What the platform keeps for itself is nobody's, whatever a claim says (D48).
const reserved = /^\/api\/(?:v[0-9]+|modules)(?:\/|$)/

/** Whether a path can belong to a module at all. */
export const isModulePath = (path: string): boolean =>
  path.startsWith('/modules/') || (path.startsWith('/api/') && !reserved.test(path))

/** The module that a request is for: `/modules/<id>…`, or below an API path. Undefined where nothing serves it. */
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
