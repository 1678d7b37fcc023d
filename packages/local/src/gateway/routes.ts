export interface GatewayRoute {
  functionName: string
  /** `ANY` matches the methods that have no route of their own for this path. */
  method: string
  /** Path with `{name}` parameters; a final `{name+}` matches one or more remaining segments. */
  path: string
}

export interface Match {
  functionName: string
  /** API Gateway's name of the route: `GET /api/v1/jobs/{id}`, or `$default`. */
  routeKey: string
  pathParameters?: Record<string, string>
}

export type Router = (method: string, path: string) => Match

interface Branch {
  literals: Map<string, Branch>
  parameter?: Branch
  greedyRoute?: GatewayRoute
  route?: GatewayRoute
}

/**
 * Returns a router that selects routes as API Gateway does: it prefers a full match to a greedy one, then a route of
 * the method to one of `ANY`, and then the earlier literal segment.
 */
export function createRouter(routes: readonly GatewayRoute[], defaultFunction: string): Router {
  const roots = new Map<string, Branch>()
  for (const route of routes) {
    const root = roots.get(route.method) ?? newBranch()
    roots.set(route.method, root)
    addRoute(root, route)
  }
  return (method, path) => {
    const segments = segmentsOf(path)
    const candidates = [roots.get(method), roots.get('ANY')].filter((root) => root !== undefined)
    const route =
      firstMatch(candidates, (root) => find(root, segments, 0)) ??
      firstMatch(candidates, (root) => findGreedy(root, segments, 0))
    return route === undefined ? { functionName: defaultFunction, routeKey: '$default' } : matchOf(route, segments)
  }
}

function firstMatch(
  roots: readonly Branch[],
  search: (root: Branch) => GatewayRoute | undefined,
): GatewayRoute | undefined {
  for (const root of roots) {
    const route = search(root)
    if (route !== undefined) return route
  }
  return undefined
}

const newBranch = (): Branch => ({ literals: new Map() })
const segmentsOf = (path: string): string[] => path.split('/').slice(1)
const isParameter = (segment: string): boolean => segment.startsWith('{')
const isGreedy = (segment: string): boolean => segment.endsWith('+}')

function addRoute(root: Branch, route: GatewayRoute): void {
  let branch = root
  for (const segment of segmentsOf(route.path)) {
    if (isGreedy(segment)) {
      branch.greedyRoute = route
      return
    }
    const nextBranch: Branch = (isParameter(segment) ? branch.parameter : branch.literals.get(segment)) ?? newBranch()
    if (isParameter(segment)) branch.parameter = nextBranch
    else branch.literals.set(segment, nextBranch)
    branch = nextBranch
  }
  branch.route = route
}

function find(branch: Branch, segments: readonly string[], index: number): GatewayRoute | undefined {
  const segment = segments[index]
  if (segment === undefined) return branch.route
  const literal = branch.literals.get(segment)
  const route = literal && find(literal, segments, index + 1)
  if (route !== undefined || branch.parameter === undefined || segment === '') return route
  return find(branch.parameter, segments, index + 1)
}

/** Prefers the longest matching prefix. */
function findGreedy(branch: Branch, segments: readonly string[], index: number): GatewayRoute | undefined {
  const segment = segments[index]
  if (segment === undefined) return undefined
  const literal = branch.literals.get(segment)
  const deeperRoute =
    (literal && findGreedy(literal, segments, index + 1)) ??
    (branch.parameter && segment !== '' ? findGreedy(branch.parameter, segments, index + 1) : undefined)
  const hasRemainder = segments.length - index > 1 || segment !== ''
  return deeperRoute ?? (hasRemainder ? branch.greedyRoute : undefined)
}

function matchOf(route: GatewayRoute, segments: readonly string[]): Match {
  const parameters = segmentsOf(route.path).flatMap((segment, index) => {
    if (isGreedy(segment)) return [[segment.slice(1, -2), segments.slice(index).join('/')] as const]
    return isParameter(segment) ? [[segment.slice(1, -1), segments[index] ?? ''] as const] : []
  })
  return {
    functionName: route.functionName,
    routeKey: `${route.method} ${route.path}`,
    ...(parameters.length > 0 && { pathParameters: Object.fromEntries(parameters) }),
  }
}
