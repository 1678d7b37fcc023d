/** A method and a path, and the function that serves them. */
export interface GatewayRoute {
  functionName: string
  method: string
  /** Path with `{name}` parameters. */
  path: string
}

/** The route of one request. */
export interface Match {
  functionName: string
  /** As API Gateway names it: `GET /api/v1/jobs/{id}`, or `$default`. */
  routeKey: string
  pathParameters?: Record<string, string>
}

export type Router = (method: string, path: string) => Match

interface Branch {
  literals: Map<string, Branch>
  parameter?: Branch
  route?: GatewayRoute
}

/** Finds the route of a request as API Gateway does: of two that fit, the one with the earlier literal segment. */
export function createRouter(routes: readonly GatewayRoute[], defaultFunction: string): Router {
  const roots = new Map<string, Branch>()
  for (const route of routes) {
    const root = roots.get(route.method) ?? newBranch()
    roots.set(route.method, root)
    plant(root, route)
  }
  return (method, path) => {
    const segments = segmentsOf(path)
    const root = roots.get(method)
    const route = root && find(root, segments, 0)
    return route === undefined ? { functionName: defaultFunction, routeKey: '$default' } : matchOf(route, segments)
  }
}

const newBranch = (): Branch => ({ literals: new Map() })
const segmentsOf = (path: string): string[] => path.split('/').slice(1)
const isParameter = (segment: string): boolean => segment.startsWith('{')

function plant(root: Branch, route: GatewayRoute): void {
  let branch = root
  for (const segment of segmentsOf(route.path)) {
    const next: Branch = (isParameter(segment) ? branch.parameter : branch.literals.get(segment)) ?? newBranch()
    if (isParameter(segment)) branch.parameter = next
    else branch.literals.set(segment, next)
    branch = next
  }
  branch.route = route
}

function find(branch: Branch, segments: readonly string[], index: number): GatewayRoute | undefined {
  const segment = segments[index]
  if (segment === undefined) return branch.route
  const literal = branch.literals.get(segment)
  const found = literal && find(literal, segments, index + 1)
  if (found !== undefined || branch.parameter === undefined || segment === '') return found
  return find(branch.parameter, segments, index + 1)
}

function matchOf(route: GatewayRoute, segments: readonly string[]): Match {
  const named = segmentsOf(route.path).flatMap((segment, index) =>
    isParameter(segment) ? [[segment.slice(1, -1), segments[index] ?? ''] as const] : [],
  )
  return {
    functionName: route.functionName,
    routeKey: `${route.method} ${route.path}`,
    ...(named.length > 0 && { pathParameters: Object.fromEntries(named) }),
  }
}
