import { randomBytes } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { expect, test, vi } from 'vitest'
import { modulePaths } from '@platform/contract/passage'
import { permissionsOf } from '@platform/contract/permission'
import { create as createApiToken } from '@platform/core/accounts/api-token'
import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { moduleTokenSeconds, verifyAccessToken } from '@platform/core/signing/access-token'
import { readPublicKeys } from '@platform/core/signing/published-keys'
import type { Permission } from '@platform/contract/permission'
import { moduleProxy } from '@platform/http/proxy/proxy'
import { notAskedHeader } from '@platform/modules/protocol'
import { callModule } from '@platform/worker/modules/call'
import { handler as auth } from '../../functions/auth.ts'
import { handler } from '../../functions/gateway/modules.ts'
import { publicPortalHeaders } from '../support/browser-session.ts'
import { bearer, errorCodeOf } from '../support/fixtures.ts'
import { type Instance, newModuleId, reserveRoutes, runInstance } from '../support/hostile-module.ts'
import { type TestResponse, send } from '../support/request.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { waitFor } from '../support/wait-for.ts'
import { get, operator, passCacheTime, request, respond } from './module-requests.ts'

await vi.hoisted(() => {
  // Requests bypass the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

const statusAndError = ({ status, json }: TestResponse) => [status, json?.error]

test('forwards the API path and the pages of a module with everything below them', async () => {
  await using module = await runInstance()
  const { api, moduleId } = module
  const paths = [api, `${api}/`, `${api}/a/b?c=d&e=%C3%A4+%2F&c=2`, `/modules/${moduleId}`, `/modules/${moduleId}/page`]
  for (const path of paths) expect(await get(path)).toMatchObject({ status: 200, text: 'ok' })
  expect(module.requests.map(({ url }) => url)).toEqual(paths)
  for (const path of [`${api}x`, `${api}-x`, `/modules/${moduleId}x`]) expect((await get(path)).status).toBe(404)
  expect(module.requests).toHaveLength(paths.length)
  expect(modulePaths).toMatchObject({ function: 'gateway/modules', paths: ['/api/{proxy+}', '/modules/{proxy+}'] })
})

test.for([
  {},
  { authorization: 'Basic YTpi' },
  { authorization: 'Bearer x.y.z' },
  { authorization: `Bearer plat_${newId('tok')}_${'a'.repeat(43)}` },
])('rejects the credentials %j', async (headers) => {
  await using module = await runInstance()
  const response = await get(module.api, headers)
  expect(statusAndError(response)).toEqual([401, 'unauthenticated'])
  expect(response.headers['www-authenticate']).toBe('Bearer')
  expect(module.requests).toEqual([])
})

test('distinguishes an expired access token from an invalid one', async () => {
  await using module = await runInstance()
  const headers = await bearer(['Viewer'])
  await get(module.api, headers)
  shiftClock(901_000)
  const response = await get(module.api, headers)
  shiftClock(-901_000)
  expect(response.json.error).toBe('token_expired')
})

test('gives up on a module that does not respond', async () => {
  const proxy = moduleProxy((deployment, request) =>
    callModule(deployment, request, { timeoutMs: 100, maxBytes: 1000 }),
  )
  await using module = await runInstance(() => undefined)
  const response = await send(proxy, { target: module.api, headers: operator })
  expect(statusAndError(response)).toEqual([504, 'module_timeout'])
})

test('reports a module that starts, stops or has ended as unavailable', async () => {
  await using starting = await runInstance(respond({ [notAskedHeader]: '1' }, '{"error":"wrong_state"}', 503))
  await using endedInstance = await runInstance()
  await get(endedInstance.api)
  await endedInstance.end()
  for (const { api } of [starting, endedInstance]) {
    const response = await get(api)
    expect(statusAndError(response)).toEqual([503, 'module_unavailable'])
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
  }
})

test('sends a request that a release no longer accepts to its successor', async () => {
  await using old = await runInstance(respond({ [notAskedHeader]: '1' }, '{}', 503))
  await using successor = await runInstance(respond({}, 'successor'), { moduleId: old.moduleId, hasRoute: false })
  // Refresh the cached routes before the successor takes over.
  expect((await get('/api/unknown')).status).toBe(404)
  await reserveRoutes(old.moduleId, { apiBasePath: old.api, deployment: successor.deployment })
  expect((await get(old.api)).text).toBe('successor')
  expect(successor.requests).toHaveLength(1)
})

test('reports a module during its installation as unavailable to authenticated callers only', async () => {
  const moduleId = newModuleId()
  const apiBasePath = `/api/${moduleId}`
  await reserveRoutes(moduleId, { apiBasePath })
  passCacheTime()
  expect((await get(apiBasePath, {})).status).toBe(401)
  expect((await get(apiBasePath)).json.error).toBe('module_unavailable')
})

/** Returns a module whose cached deployment has been replaced. */
async function replacedModule() {
  const oldInstance = await runInstance()
  const { moduleId, api } = oldInstance
  const currentInstance = await runInstance(undefined, { moduleId, hasRoute: false })
  await get(api)
  await reserveRoutes(moduleId, { apiBasePath: api, deployment: currentInstance.deployment })
  shiftClock(200)
  const dispose = async () => {
    await Promise.all([oldInstance, currentInstance].map((each) => each[Symbol.asyncDispose]()))
  }
  return { old: oldInstance, current: currentInstance, api, [Symbol.asyncDispose]: dispose }
}

const post = (target: string) => request({ method: 'POST', target, body: 'once' })

test('answers OPTIONS and rejects unknown methods with the allowed ones', async () => {
  await using module = await runInstance()
  const ask = (method: string) => request({ method, target: module.api })
  const allow = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
  expect(await ask('OPTIONS')).toMatchObject({ status: 204, headers: { allow } })
  for (const method of ['TRACE', 'PROPFIND']) {
    expect(await ask(method)).toMatchObject({ status: 405, headers: { allow }, json: { error: 'method_not_allowed' } })
  }
})

test('sends requests that do not reach the old instance to the new one', async () => {
  await using module = await replacedModule()
  await module.old.end()
  const responses = await Promise.all([1, 2, 3].map(() => post(module.api)))
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(module.current.requests.map(({ body }) => String(body))).toEqual(['once', 'once', 'once'])
})

test('never repeats a request that has reached an instance', async () => {
  await using module = await replacedModule()
  module.old.respondWith((_, response) => void response.destroy())
  expect((await post(module.api)).status).toBe(502)
  expect([module.old.requests.length, module.current.requests.length]).toEqual([2, 0])
})

test('forgets a removed module when it is unreachable, and within a second otherwise', async () => {
  await using removedInstance = await runInstance()
  await using orphan = await runInstance()
  for (const { api } of [removedInstance, orphan]) expect((await get(api)).status).toBe(200)
  for (const { moduleId } of [removedInstance, orphan]) await reserveRoutes(moduleId, undefined)
  await removedInstance.end()
  shiftClock(200)
  expect((await get(removedInstance.api)).json.error).toBe('route_not_found')
  passCacheTime()
  expect((await get(orphan.api)).json.error).toBe('route_not_found')
})

test('finds a new module although its path was unknown a moment before', async () => {
  await using module = await runInstance(undefined, { hasRoute: false })
  const { moduleId, api, deployment } = module
  expect((await get(api)).status).toBe(404)
  await reserveRoutes(moduleId, { apiBasePath: api, deployment })
  shiftClock(150)
  expect((await get(api)).status).toBe(200)
})

const reservedPaths = ['/api/v1', '/api/v2', '/api/modules', '/api', '', '/', '/modules', '/relay', '/modules/{other}']

test.for(reservedPaths.flatMap((path) => [[path, '0'] as const, [path, 'z'] as const]))(
  'ignores a stored reservation of the path %j, sorted first or last (%s)',
  async ([path, prefix]) => {
    const moduleId = prefix + newModuleId()
    await using forgedInstance = await runInstance(undefined, { moduleId, hasRoute: false })
    await using otherInstance = await runInstance()
    const apiBasePath = path.replace('{other}', otherInstance.moduleId)
    await reserveRoutes(moduleId, { apiBasePath, deployment: forgedInstance.deployment })
    passCacheTime()
    for (const target of ['/api/v1/clusters', '/api/v12/x', '/api/modules/install', '/relay/x', '/']) {
      expect([target, (await get(target)).status]).toEqual([target, 404])
    }
    for (const target of [otherInstance.api, `/modules/${otherInstance.moduleId}`])
      expect((await get(target)).status).toBe(200)
    expect([forgedInstance.requests, otherInstance.requests.length]).toEqual([[], 2])
    expect((await get(`/modules/${moduleId}`)).status).toBe(200)
    await reserveRoutes(moduleId, undefined)
  },
)

test('limits concurrent requests to a hanging module per organisation and in total', async () => {
  await using hangingInstance = await runInstance(() => undefined)
  await using otherInstance = await runInstance()
  const [secondHeaders, thirdHeaders] = [await bearer(['Viewer']), await bearer(['Viewer'])]
  const pending: Promise<TestResponse>[] = []
  for (const headers of [operator, secondHeaders]) {
    pending.push(...Array.from({ length: 50 }, () => get(hangingInstance.api, headers)))
    await waitFor('all requests to arrive', async () => hangingInstance.requests.length === pending.length)
    for (const rejectedHeaders of [headers, ...(pending.length === 100 ? [thirdHeaders] : [])]) {
      const response = await get(hangingInstance.api, rejectedHeaders)
      expect(statusAndError(response)).toEqual([503, 'module_unavailable'])
      expect(response.headers['retry-after']).toBe('1')
    }
  }
  expect((await get(otherInstance.api)).status).toBe(200)
  expect(hangingInstance.requests).toHaveLength(100)
  hangingInstance.closeConnections()
  expect((await Promise.all(pending)).map(({ status }) => status)).toEqual(pending.map(() => 502))
  hangingInstance.respondWith(respond({}))
  expect((await get(hangingInstance.api)).status).toBe(200)
})

test('reads the routes once per second, and never for paths of the platform', async () => {
  await using module = await runInstance()
  await get(module.api)
  const threeRequests = () => Promise.all([1, 2, 3].map(() => get(module.api)))
  for (const expected of [1, 0]) {
    if (expected === 1) passCacheTime()
    expect(await countStoreCalls(threeRequests)).toBe(expected)
  }
  passCacheTime()
  for (const path of ['/api/v1/unknown', '/api/modules/x', '/api'])
    expect(await countStoreCalls(() => get(path))).toBe(0)
  const guesses = Array.from({ length: 50 }, (_, index) => get(`/api/guess-${index}`, {}))
  expect(await countStoreCalls(() => Promise.all(guesses))).toBeLessThanOrEqual(1)
})

test('counts requests to modules in the rate limit of the user', async () => {
  await using module = await runInstance()
  const headers = await bearer(['Viewer'])
  const remainingOf = async (response: Promise<TestResponse>) => Number((await response).headers['ratelimit-remaining'])
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  const counts = [
    await remainingOf(get(module.api, headers)),
    await remainingOf(send(auth, { target: '/api/v1/auth/me', headers })),
    await remainingOf(get(`/modules/${module.moduleId}`, headers)),
  ]
  vi.useRealTimers()
  const [first = 0] = counts
  expect(counts).toEqual([first, first - 1, first - 2])
})

test('forwards content headers, and removes credentials, addresses and connection headers', async () => {
  await using module = await runInstance()
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const forwardedHeaders = {
    accept: 'text/html',
    'accept-language': 'de, en;q=0.5',
    'content-type': 'application/json',
    'idempotency-key': 'k',
    'if-none-match': '"a"',
    range: 'bytes=0-1',
  }
  const removedHeaders = {
    cookie: 'session=secret',
    'proxy-authorization': 'Basic x',
    'x-platform-user': 'forged',
    'x-platform-token': 'forged',
    'x-platform-grace-ms': '1',
    'x-forwarded-for': '203.0.113.9',
    forwarded: 'for=203.0.113.9',
    'x-real-ip': '203.0.113.9',
    origin: 'https://portal.example.com',
    referer: 'https://portal.example.com/secret',
    'user-agent': 'browser',
    'transfer-encoding': 'chunked',
    upgrade: 'websocket',
    connection: 'x-custom',
    'x-custom': 'x',
    'accept-encoding': 'gzip',
  }
  const headers = { ...forwardedHeaders, ...removedHeaders, traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  const response = await request({ method: 'POST', target: module.api, headers, body: '{}' })
  expect(response.headers['x-trace-id']).toBe(traceId)
  const { host, connection, 'content-length': length, ...received } = module.requests[0]?.headers ?? {}
  expect([host, connection, length]).toEqual(['module', 'close', '2'])
  const addedHeaders = ['traceparent', 'x-platform-token', 'x-platform-user']
  expect(Object.keys(received).toSorted()).toEqual([...Object.keys(forwardedHeaders), ...addedHeaders].toSorted())
  expect(received).toMatchObject(forwardedHeaders)
  expect(received['traceparent']).toMatch(new RegExp(`^00-${traceId}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`))
  for (const name of ['x-platform-user', 'x-platform-token']) expect(received[name]).not.toBe('forged')
  expect(JSON.stringify(received)).not.toContain(operator.authorization.split(' ')[1])
})

test('authenticates a browser by its cookie for same-origin requests, without forwarding the cookie', async () => {
  await using module = await runInstance()
  const token = operator.authorization.split(' ')[1] ?? ''
  const cookie = `__Host-plat_access=${token}; __Host-plat_refresh=secret; theme=dark`
  const sentRequest = { method: 'POST', target: module.api, body: '{}', headers: { ...publicPortalHeaders, cookie } }
  expect((await send(handler, sentRequest)).status).toBe(200)
  const [received] = module.requests
  expect(received?.headers).not.toHaveProperty('cookie')
  expect(JSON.stringify(received?.headers)).not.toContain(token)
  for (const method of ['GET', 'HEAD', 'POST']) {
    const headers = { ...sentRequest.headers, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }
    expect((await send(handler, { ...sentRequest, method, headers })).status).toBe(403)
  }
  const anonymous = { ...publicPortalHeaders, cookie: 'theme=dark' }
  expect((await send(handler, { ...sentRequest, headers: anonymous })).status).toBe(401)
  expect(module.requests).toHaveLength(1)
})

test('omits headers whose values are unsafe', async () => {
  await using module = await runInstance()
  const headers = { accept: 'a\r\nx-platform-user: forged', 'accept-language': 'd\u0000e', 'if-match': '"\u20ac"' }
  expect((await request({ target: module.api, headers })).status).toBe(200)
  for (const name of Object.keys(headers)) expect(module.requests[0]?.headers).not.toHaveProperty(name)
})

test('forwards bodies and responses byte by byte', async () => {
  const bytes = randomBytes(1_000_000)
  await using module = await runInstance(respond({ 'content-type': 'image/png' }, bytes))
  const { api } = module
  const headers = { 'content-type': 'application/octet-stream' }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const response = await request({ method, target: api, headers, body: bytes })
    expect(response.bytes.equals(bytes)).toBe(true)
  }
  expect(module.requests.map(({ body }) => body.equals(bytes))).toEqual([true, true, true, true])
  const text = '{"text":"ä€😀\u0001"}'
  module.respondWith(respond({ 'content-type': 'application/json' }, text))
  expect((await request({ target: api })).text).toBe(text)
  module.respondWith(respond({ 'content-type': 'application/json', etag: '"1"' }, ''))
  expect(await request({ method: 'HEAD', target: api })).toMatchObject({
    status: 200,
    text: '',
    headers: { etag: '"1"' },
  })
})

test('rejects a body above 4 MiB before forwarding it', async () => {
  await using module = await runInstance()
  const body = Buffer.alloc(4 * 1024 * 1024)
  expect((await request({ method: 'POST', target: module.api, body })).status).toBe(200)
  const rejectedResponse = await request({ method: 'POST', target: module.api, body: Buffer.alloc(body.length + 1) })
  expect(statusAndError(rejectedResponse)).toEqual([413, 'payload_too_large'])
  expect(module.requests).toHaveLength(1)
})

test.for(['/../v1/setup', '/%2e%2e/x', '/a%5Cb', '/a%00b', '/./a', '/..', '/.%2e', '/a%2F..%2Fb', '/%2e%5c'])(
  'rejects the path %s below a module, sent as it is or decoded',
  async (suffix) => {
    await using module = await runInstance()
    for (const path of [module.api, `/modules/${module.moduleId}`]) {
      for (const gateway of [{}, { isOneMachine: true }] as const)
        expect(statusAndError(await request({ target: path + suffix, ...gateway }))).toEqual([400, 'invalid_path'])
    }
    expect(module.requests).toEqual([])
  },
)

const encodedPaths = [
  '/a%2Fb',
  '/a%3Fb',
  '/a%23b',
  '/a%25b',
  '/%252e%252e/',
  '//v1',
  '/a//',
  "/a;b=c,d+e@f:g!$&'()*%20%c3%a4",
]

test.for(encodedPaths)('one machine passes the path %s as it was sent', async (suffix) => {
  await using module = await runInstance()
  for (const path of [module.api, `/modules/${module.moduleId}`]) {
    expect((await request({ target: `${path}${suffix}?q=%2F`, hasSentPath: true })).status).toBe(200)
    expect(module.requests.at(-1)?.url).toBe(`${path}${suffix}?q=%2F`)
  }
})

test.for(['/a%3Fb', '/a%23b', '/a%25b', '//v1', '/%EF%BF%BD'])(
  'rejects the path %s if the gateway has decoded it, because it is ambiguous',
  async (suffix) => {
    await using module = await runInstance()
    expect(statusAndError(await get(module.api + suffix))).toEqual([400, 'invalid_path'])
  },
)

test('answers a request for WebSocket with 501', async () => {
  await using module = await runInstance()
  const headers = { ...operator, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
  expect(statusAndError(await get(module.api, headers))).toEqual([501, 'upgrade_not_supported'])
  expect(module.requests).toEqual([])
})

test('encodes path and query for the module', async () => {
  await using module = await runInstance()
  await get(`${module.api}/a%20b/%C3%A4;x=%F0%9F%98%80?q=a%20b`)
  await get(`${module.api}?q=ä b\r\nx: y#z`)
  expect(module.requests.map(({ url }) => url.slice(module.api.length))).toEqual([
    '/a%20b/%C3%A4%3Bx%3D%F0%9F%98%80?q=a%20b',
    '?q=%C3%A4%20b%0D%0Ax:%20y%23z',
  ])
})

const userTokenOf = ({ requests }: Instance): string => String(requests.at(-1)?.headers['x-platform-user'])
const keySet = async () => createLocalJWKSet(await readPublicKeys())

test('identifies the caller by a signed one-minute token for this module', async () => {
  await using module = await runInstance()
  const organisationId = newId('org')
  const headers = await bearer(['Operator'], organisationId)
  await get(module.api, headers)
  const token = userTokenOf(module)
  const expected = { audience: module.moduleId, issuer: 'platform', typ: 'module+jwt' }
  const { payload } = await jwtVerify(token, await keySet(), expected)
  const { userId } = await verifyAccessToken(headers.authorization.slice('Bearer '.length))
  expect(payload).toMatchObject({ sub: userId, org: organisationId })
  expect(payload['permissions']).toEqual(expect.arrayContaining(permissionsOf(['Operator'])))
  expect(Number(payload.exp) - Number(payload.iat)).toBe(moduleTokenSeconds)
  expect(Object.keys(payload).toSorted()).toEqual(['aud', 'exp', 'iat', 'iss', 'jti', 'org', 'permissions', 'sub'])
  expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'EdDSA', typ: 'module+jwt' })
})

test.for(['hello-2', 'platform-api', 'platform'])(
  'the user token of the module %s is valid neither for the platform nor for another module',
  async (moduleId) => {
    await using module = await runInstance(undefined, { moduleId })
    await using otherInstance = await runInstance()
    await get(module.api)
    const token = userTokenOf(module)
    expect(await errorCodeOf(verifyAccessToken(token))).toBe('unauthenticated')
    for (const path of [otherInstance.api, module.api]) {
      expect((await get(path, { authorization: `Bearer ${token}` })).status).toBe(401)
    }
    expect(otherInstance.requests).toEqual([])
    await reserveRoutes(moduleId, undefined)
  },
)

test.each<[Permission[], Permission[]]>([
  [[], []],
  [['jobs:read'], ['jobs:read']],
  [['jobs:write', 'platform:admin'], ['jobs:write']],
])('limits the user token of a module that requires %j to %j', async (permissions, visible) => {
  await using module = await runInstance(undefined, { permissions })
  await get(module.api, await bearer(['Operator']))
  expect((await jwtVerify(userTokenOf(module), await keySet())).payload['permissions']).toEqual(visible)
})

test('limits the user token to the permissions of an API token', async () => {
  await using module = await runInstance()
  const { authorization } = await bearer(['Operator'])
  const caller = await verifyAccessToken(authorization.slice('Bearer '.length))
  const { token } = await createApiToken(caller, { name: 'nightly', permissions: ['clusters:read'] })
  expect((await get(module.api, { authorization: `Bearer ${token}` })).status).toBe(200)
  const { payload } = await jwtVerify(userTokenOf(module), await keySet())
  expect(payload).toMatchObject({ sub: caller.userId, org: caller.organisationId, permissions: ['clusters:read'] })
})
