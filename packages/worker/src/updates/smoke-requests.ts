import { apiFunctions } from '@platform/core/updates/function-names'
import { fallback, modulePaths } from '@platform/contract/passage'
import { routes } from '@platform/contract/index'

/** Requests of the platform to itself, as API Gateway hands them to functions. */

/** What nobody else is counted with (RFC 6666). */
const sourceIp = '100::'

/** An event of an HTTP API, payload 2.0, for a GET that nobody has signed. */
export const getEvent = (path: string) => ({
  version: '2.0',
  routeKey: '$default',
  rawPath: path,
  rawQueryString: '',
  headers: { host: 'platform', 'user-agent': 'platform-update' },
  requestContext: {
    http: { method: 'GET', path, protocol: 'HTTP/1.1', sourceIp, userAgent: 'platform-update' },
    routeKey: '$default',
    stage: '$default',
  },
  isBase64Encoded: false,
})

/** A request that a function answers, and the one status that its answer may have; undefined: any but a failure. */
export interface SmokeRequest {
  functionName: string
  path: string
  status?: number
}

export const readiness: SmokeRequest = { functionName: 'health', path: '/health/ready', status: 200 }

/** Those that have one right answer. */
const certain: readonly SmokeRequest[] = [readiness, { functionName: fallback.function, path: '/', status: 200 }]

/** A request for each function that answers any; most of them answer that somebody has to sign in. */
export const smokeRequests: readonly SmokeRequest[] = apiFunctions.map(
  (functionName) =>
    certain.find((request) => request.functionName === functionName) ?? { functionName, path: pathOf(functionName) },
)

function pathOf(functionName: string): string {
  if (functionName === modulePaths.function) return '/api/-'
  const own = routes.filter((route) => route.function === functionName).map(({ endpoint }) => endpoint)
  const gets = own.filter(({ method }) => method === 'GET')
  // What anybody may ask could begin something: a way to sign in, say.
  const [first] = [...gets.filter(({ access }) => access !== 'public'), ...gets, ...own]
  return (first?.path ?? '/').replaceAll(/\{\w+\}/g, '-')
}
