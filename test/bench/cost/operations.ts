import { capabilitiesOf, type EndpointDefinition } from '@platform/contract/endpoint'
import { type Route, routes } from '@platform/contract/index'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { send, jsonRequest, type TestRequest } from '../../support/request.ts'
import { toRequest, validRequest } from '../../functions/fixtures.ts'
import { newUser, password, type SignedInUser } from '../../functions/users.ts'
import { operationNamed } from '../../functions/operations.ts'
import { expectSuccess } from '../support/requests.ts'
import { passSecond, type Recorder } from './recorder.ts'

/** Operations without a budget here: one-time setup, provider callbacks, a static file, and relays (see `flows.ts`). */
const excludedPaths = /\/setup\/|\/auth\/oidc\/|\/consent-callback$|\/events\/catalog$|\/relay\//

const usesTable = (endpoint: EndpointDefinition): boolean =>
  capabilitiesOf(endpoint).some((capability) => capability.startsWith('table:'))

const operationName = ({ method, endpoint }: Route): string =>
  `${method} ${endpoint.path}`.replace('/api/v1/', '/').replaceAll(/\{\w+\}/g, '{id}')

export async function recordOperations(recorder: Recorder): Promise<void> {
  for (const route of routes) {
    if (excludedPaths.test(route.endpoint.path) || !usesTable(route.endpoint)) continue
    for (const operation of [undefined, operationName(route)]) {
      const user = await newUser('PlatformAdmin')
      const request = await requestFor(route, user)
      passSecond()
      // Reads the access keys again if their cache has expired, so that no measured request does.
      await verifyAccessToken(String(user.headers['authorization']).slice('Bearer '.length))
      await recorder.request('users', readRoles(user), firstRead)
      await recorder.request(route.function, request, operation)
    }
  }
}

/** The operation that reads user and session. Later requests of the session in the same minute do not read them. */
const firstRead = 'GET /roles, the first request of a session in a minute'
const readRoles = ({ headers }: SignedInUser): TestRequest => ({ target: '/api/v1/roles', headers })

async function requestFor({ method, endpoint }: Route, user: SignedInUser): Promise<TestRequest> {
  const operation = operationNamed(`${method} ${endpoint.path}`)
  if (endpoint.access === 'public') return publicRequest(method, endpoint.path, user)
  return toRequest(operation, await validRequest(operation, user), user.headers)
}

const sameOrigin = { 'sec-fetch-site': 'same-origin' }

async function publicRequest(method: string, path: string, { username }: SignedInUser): Promise<TestRequest> {
  const signIn = (target: string) => jsonRequest(target, { username, password }, sameOrigin)
  const open = async (target: string) =>
    expectSuccess(await send(operationNamed(`POST ${target}`).handler, signIn(target)))
  if (path.endsWith('/refresh') && !path.includes('/session')) {
    return jsonRequest(path, { refreshToken: (await open('/api/v1/auth/login')).json.refreshToken })
  }
  if (/\/(?:login|local-login)$/.test(path) || (path.endsWith('/auth/session') && method === 'POST'))
    return signIn(path)
  if (!path.startsWith('/api/v1/auth/session')) return { method, target: path }
  const { cookies } = await open('/api/v1/auth/session')
  return {
    method,
    target: path,
    headers: { ...sameOrigin, cookie: cookies.map((each) => each.split(';')[0]).join('; ') },
  }
}
