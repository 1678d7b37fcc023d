import { forEachLimit } from '@platform/core/lib/async'
import { ProbeResponse, probeEvent } from '@platform/core/updates/version-probe'
import type { InstalledRelease, UpdatePlan } from '@platform/core/updates/record'
import { apiFunctions } from '@platform/core/updates/function-names'
import { fallback, modulePaths } from '@platform/contract/passage'
import { routes } from '@platform/contract/index'
import * as z from 'zod'
import { UpdateError, describeError } from './errors.ts'
import type { UpdateWork } from './apply.ts'

/** An address of the discard prefix (RFC 6666), so that requests are not counted with those of a client. */
const sourceIp = '100::'

/** An event of an HTTP API (payload format 2.0) for an unauthenticated GET. */
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

/** A request to a function, and the only accepted status of its response; if undefined, any status below 500. */
export interface SmokeRequest {
  functionName: string
  path: string
  status?: number
}

export const readinessRequest: SmokeRequest = { functionName: 'health', path: '/health/ready', status: 200 }

const exactRequests: readonly SmokeRequest[] = [
  readinessRequest,
  { functionName: fallback.function, path: '/', status: 200 },
]

/** One request for each function that serves the API. Most requests are rejected, because they have no credentials. */
export const smokeRequests: readonly SmokeRequest[] = apiFunctions.map(
  (functionName) =>
    exactRequests.find((request) => request.functionName === functionName) ?? {
      functionName,
      path: pathOf(functionName),
    },
)

function pathOf(functionName: string): string {
  if (functionName === modulePaths.function) return '/api/-'
  const endpoints = routes.filter((route) => route.function === functionName).map(({ endpoint }) => endpoint)
  const gets = endpoints.filter(({ method }) => method === 'get')
  // Public endpoints come last, because a call may have side effects, such as starting a sign-in.
  const [firstEndpoint] = [...gets.filter(({ access }) => access !== 'public'), ...gets, ...endpoints]
  return (firstEndpoint?.path ?? '/').replaceAll(/\{\w+\}/g, '-')
}

const maxConcurrentCalls = 6
/** A function that fails half of its requests at random is detected with a probability of 255/256. */
const repeatCount = 8

/** Calls every function of a staged release before clients do. Throws `UpdateError`. */
export async function runSmokeTests(work: UpdateWork, { release }: UpdatePlan): Promise<void> {
  await probeAll(work, release)
  const requests = smokeRequests.filter(({ functionName }) => work.names.includes(functionName))
  await forEachLimit(maxConcurrentCalls, requests, async (request) => {
    for (let count = 0; count < repeatCount; count++) await sendSmokeRequest(work, release, request)
  })
}

/** Throws `UpdateError` if a function does not report the version of the release. */
export const probeAll = ({ target, names }: UpdateWork, release: InstalledRelease): Promise<void> =>
  forEachLimit(maxConcurrentCalls, names, async (name) => {
    const response = ProbeResponse.safeParse(await invoke(target, release, name, probeEvent))
    const problem = response.success ? `reports version ${response.data.version}` : 'reports no version'
    if (response.data?.version !== release.version) throw functionError(release, name, problem)
  })

const GatewayResponse = z.object({ statusCode: z.number() })

/** Sends a request without credentials. Throws `UpdateError` for an unexpected status. */
export async function sendSmokeRequest({ target }: UpdateWork, release: InstalledRelease, request: SmokeRequest) {
  const { functionName, path, status } = request
  const response = GatewayResponse.safeParse(await invoke(target, release, functionName, getEvent(path)))
  const statusCode = response.data?.statusCode ?? 500
  const isAccepted = status === undefined ? statusCode < 500 : statusCode === status
  if (!isAccepted) throw functionError(release, functionName, `responds ${statusCode} to GET ${path}`)
}

/**
 * Invokes a function. Attributes a failure to the release only if the target responds: `current` throws if the target
 * is unreachable.
 */
async function invoke(target: UpdateWork['target'], release: InstalledRelease, name: string, event: unknown) {
  try {
    return await target.invoke(release, name, event)
  } catch (error) {
    await target.current()
    throw functionError(release, name, `fails: ${describeError(error)}`)
  }
}

const functionError = ({ version }: InstalledRelease, name: string, problem: string) =>
  new UpdateError(`Function ${name} of version ${version} ${problem}.`)
