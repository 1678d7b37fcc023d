import { forEachLimit } from '@platform/core/lib/async'
import { ProbeResponse, probeEvent } from '@platform/core/updates/version-probe'
import { type InstalledRelease, type UpdatePlan } from '@platform/core/updates/record'
import { apiFunctions } from '@platform/core/updates/function-names'
import { fallback, modulePaths } from '@platform/contract/passage'
import { routes } from '@platform/contract/index'
import * as z from 'zod'
import { UpdateError, describeError } from './errors.ts'
import { type UpdateWork } from './apply.ts'

/** Requests of the platform to itself, in the format of API Gateway. */

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

export const readiness: SmokeRequest = { functionName: 'health', path: '/health/ready', status: 200 }

/** Requests with a single correct status. */
const certain: readonly SmokeRequest[] = [readiness, { functionName: fallback.function, path: '/', status: 200 }]

/** One request for each function that serves the API; most responses require authentication. */
export const smokeRequests: readonly SmokeRequest[] = apiFunctions.map(
  (functionName) =>
    certain.find((request) => request.functionName === functionName) ?? { functionName, path: pathOf(functionName) },
)

function pathOf(functionName: string): string {
  if (functionName === modulePaths.function) return '/api/-'
  const own = routes.filter((route) => route.function === functionName).map(({ endpoint }) => endpoint)
  const gets = own.filter(({ method }) => method === 'get')
  // A public endpoint may have side effects, such as starting a sign-in.
  const [first] = [...gets.filter(({ access }) => access !== 'public'), ...gets, ...own]
  return (first?.path ?? '/').replaceAll(/\{\w+\}/g, '-')
}

const atOnce = 6
/** Detects a function that fails every other request in 255 of 256 cases. */
const repeats = 8

/** Calls every function of a staged release before any client does. Throws `UpdateError`. No store calls of its own. */
export async function runSmokeTests(work: UpdateWork, { release }: UpdatePlan): Promise<void> {
  await probeAll(work, release)
  const asked = smokeRequests.filter(({ functionName }) => work.names.includes(functionName))
  await forEachLimit(atOnce, asked, async (request) => {
    for (let count = 0; count < repeats; count++) await smokeRequest(work, release, request)
  })
}

/** Checks that every function reports the version of the release. */
export const probeAll = ({ target, names }: UpdateWork, release: InstalledRelease): Promise<void> =>
  forEachLimit(atOnce, names, async (name) => {
    const answer = ProbeResponse.safeParse(await ask(target, release, name, probeEvent))
    const said = answer.success ? `says that it is of version ${answer.data.version}` : 'does not say its version'
    if (answer.data?.version !== release.version) throw failed(release, name, said)
  })

const GatewayAnswer = z.object({ statusCode: z.number() })

/** Sends an unauthenticated request to a function and checks the status. */
export async function smokeRequest({ target }: UpdateWork, release: InstalledRelease, request: SmokeRequest) {
  const { functionName, path, status } = request
  const answer = GatewayAnswer.safeParse(await ask(target, release, functionName, getEvent(path)))
  const statusCode = answer.data?.statusCode ?? 500
  const isGood = status === undefined ? statusCode < 500 : statusCode === status
  if (!isGood) throw failed(release, functionName, `answers ${statusCode} to GET ${path}`)
}

/** The release is at fault, unless its target does not answer either. */
async function ask(target: UpdateWork['target'], release: InstalledRelease, name: string, event: unknown) {
  try {
    return await target.invoke(release, name, event)
  } catch (error) {
    await target.current()
    throw failed(release, name, `fails: ${describeError(error)}`)
  }
}

const failed = ({ version }: InstalledRelease, name: string, what: string) =>
  new UpdateError(`Function ${name} of version ${version} ${what}.`)
