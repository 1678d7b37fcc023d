import { randomBytes } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { expect, test, vi } from 'vitest'
import { permissionsOf } from '@platform/contract/permission'
import { create as createApiToken } from '@platform/core/accounts/api-token'
import { newId } from '@platform/core/id'
import { moduleTokenSeconds, publicKeySet, verifyAccessToken } from '@platform/core/signing/access-token'
import { handler } from '../../functions/gateway/modules.ts'
import { publicPortalHeaders } from '../support/browser-session.ts'
import { send } from '../support/request.ts'
import { reserveRoutes, type Instance, runInstance } from '../support/hostile-module.ts'
import { bearer, errorCodeOf } from '../support/fixtures.ts'
import { ada, answering, ask, get } from './module-traffic.ts'

await vi.hoisted(() => {
  // Requests go past the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

test('what says who asks, from where and with what stays here; the rest arrives', async () => {
  await using module = await runInstance()
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const passed = {
    accept: 'text/html',
    'accept-language': 'de, en;q=0.5',
    'content-type': 'application/json',
    'idempotency-key': 'k',
    'if-none-match': '"a"',
    range: 'bytes=0-1',
  }
  const kept = {
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
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
  const headers = { ...passed, ...kept, traceparent }
  const answer = await ask({ method: 'POST', target: module.api, headers, body: '{}' })
  expect(answer.headers['x-trace-id']).toBe(traceId)
  const [request] = module.requests
  const { host, connection, 'content-length': length, ...own } = request?.headers ?? {}
  expect([host, connection, length]).toEqual(['module', 'close', '2'])
  expect(Object.keys(own).toSorted()).toEqual(
    [...Object.keys(passed), 'traceparent', 'x-platform-token', 'x-platform-user'].toSorted(),
  )
  expect(own).toMatchObject(passed)
  expect(own['traceparent']).toMatch(new RegExp(`^00-${traceId}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`))
  for (const name of ['x-platform-user', 'x-platform-token']) expect(own[name]).not.toBe('forged')
  expect(JSON.stringify(own)).not.toContain(ada.authorization.split(' ')[1])
})

test('a browser reaches a module by its cookie, which stays here, and from the pages of the platform only', async () => {
  await using module = await runInstance()
  const token = ada.authorization.split(' ')[1] ?? ''
  const cookie = `__Host-plat_access=${token}; __Host-plat_refresh=secret; theme=dark`
  const asked = { method: 'POST', target: module.api, body: '{}', headers: { ...publicPortalHeaders, cookie } }
  expect((await send(handler, asked)).status).toBe(200)
  const [request] = module.requests
  expect(request?.headers).not.toHaveProperty('cookie')
  expect(JSON.stringify(request?.headers)).not.toContain(token)
  for (const method of ['GET', 'HEAD', 'POST']) {
    const headers = { ...asked.headers, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }
    expect((await send(handler, { ...asked, method, headers })).status).toBe(403)
  }
  expect((await send(handler, { ...asked, headers: { ...publicPortalHeaders, cookie: 'theme=dark' } })).status).toBe(
    401,
  )
  expect(module.requests).toHaveLength(1)
})

test('a header that holds more than a header may is left out', async () => {
  await using module = await runInstance()
  const headers = { accept: 'a\r\nx-platform-user: forged', 'accept-language': 'd\u0000e', 'if-match': '"\u20ac"' }
  expect((await ask({ target: module.api, headers })).status).toBe(200)
  for (const name of Object.keys(headers)) expect(module.requests[0]?.headers).not.toHaveProperty(name)
})

test('bodies arrive as they were sent, and answers come back as they were made, bytes and all', async () => {
  const bytes = randomBytes(1_000_000)
  await using module = await runInstance(answering({ 'content-type': 'image/png' }, bytes))
  const { api } = module
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const answer = await ask({
      method,
      target: api,
      headers: { 'content-type': 'application/octet-stream' },
      body: bytes,
    })
    expect(answer.bytes.equals(bytes)).toBe(true)
  }
  expect(module.requests.map(({ body }) => body.equals(bytes))).toEqual([true, true, true, true])
  module.respondWith(answering({ 'content-type': 'image/png' }, bytes.subarray(0, 1000)))
  expect((await ask({ target: api })).bytes.equals(bytes.subarray(0, 1000))).toBe(true)
  const text = '{"text":"ä€😀\u0001"}'
  module.respondWith(answering({ 'content-type': 'application/json' }, text))
  expect((await ask({ target: api })).text).toBe(text)
  module.respondWith(answering({ 'content-type': 'application/json', etag: '"1"' }, ''))
  expect(await ask({ method: 'HEAD', target: api })).toMatchObject({ status: 200, text: '', headers: { etag: '"1"' } })
})

test.for(['OPTIONS', 'TRACE', 'PROPFIND', 'get', 'CONNECT'])('the method %s reaches no module', async (method) => {
  await using module = await runInstance()
  expect((await ask({ method, target: module.api })).json.error).toBe('route_not_found')
  expect(module.requests).toEqual([])
})

test('a body above 4 MiB is refused before it goes anywhere', async () => {
  await using module = await runInstance()
  const body = Buffer.alloc(4 * 1024 * 1024)
  expect((await ask({ method: 'POST', target: module.api, body })).status).toBe(200)
  const refused = await ask({ method: 'POST', target: module.api, body: Buffer.alloc(body.length + 1) })
  expect([refused.status, refused.json.error]).toEqual([413, 'payload_too_large'])
  expect(module.requests).toHaveLength(1)
})

test.for(['/../v1/setup', '//v1', '/%2e%2e/x', '/%252e%252e/', '/a%5Cb', '/a%00b', '/./a', '/%23', '/a%3Fb', '/..'])(
  'below a module’s path nobody means another one: %s is refused',
  async (rest) => {
    await using module = await runInstance()
    for (const path of [module.api, `/modules/${module.moduleId}`]) {
      const answer = await get(path + rest)
      expect([rest, answer.status, answer.json.error]).toEqual([rest, 400, 'invalid_path'])
    }
    expect(module.requests).toEqual([])
  },
)

test('a path is encoded anew for the module, and a query cannot become part of something else', async () => {
  await using module = await runInstance()
  await get(`${module.api}/a%20b/%C3%A4;x=%F0%9F%98%80?q=a%20b`)
  await get(`${module.api}?q=ä b\r\nx: y#z`)
  expect(module.requests.map(({ url }) => url.slice(module.api.length))).toEqual([
    '/a%20b/%C3%A4%3Bx%3D%F0%9F%98%80?q=a%20b',
    '?q=%C3%A4%20b%0D%0Ax:%20y%23z',
  ])
})

const tokenOf = ({ requests: asked }: Instance): string => String(asked.at(-1)?.headers['x-platform-user'])

test('a module is told who asks by a token of a minute that is for it alone, and that the platform has signed', async () => {
  await using module = await runInstance()
  const organisationId = newId('org')
  const headers = await bearer(['Operator'], organisationId)
  await get(module.api, headers)
  const token = tokenOf(module)
  const keys = createLocalJWKSet(await publicKeySet())
  const { payload } = await jwtVerify(token, keys, { audience: module.moduleId, issuer: 'platform', typ: 'module+jwt' })
  const { userId } = await verifyAccessToken(headers.authorization.slice('Bearer '.length))
  expect(payload).toMatchObject({ sub: userId, org: organisationId })
  expect(payload['permissions']).toEqual(expect.arrayContaining(permissionsOf(['Operator'])))
  expect(Number(payload.exp) - Number(payload.iat)).toBe(moduleTokenSeconds)
  expect(Object.keys(payload).toSorted()).toEqual(['aud', 'exp', 'iat', 'iss', 'jti', 'org', 'permissions', 'sub'])
  expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'EdDSA', typ: 'module+jwt' })
})

test.for(['hello-2', 'platform-api', 'platform'])(
  'the token that a module called %s is given opens nothing of the platform, nor another module',
  async (moduleId) => {
    await using module = await runInstance(undefined, { moduleId })
    await using other = await runInstance()
    await get(module.api)
    const token = tokenOf(module)
    expect(await errorCodeOf(verifyAccessToken(token))).toBe('unauthenticated')
    for (const path of [other.api, module.api]) {
      expect((await get(path, { authorization: `Bearer ${token}` })).status).toBe(401)
    }
    expect(other.requests).toEqual([])
    await reserveRoutes(moduleId, undefined)
  },
)

test('a token for automation opens modules as far as its user may, and no further', async () => {
  await using module = await runInstance()
  const { authorization } = await bearer(['Operator'])
  const caller = await verifyAccessToken(authorization.slice('Bearer '.length))
  const made = await createApiToken(caller, { name: 'nightly', permissions: ['clusters:read'] })
  expect((await get(module.api, { authorization: `Bearer ${made.token}` })).status).toBe(200)
  const { payload } = await jwtVerify(tokenOf(module), createLocalJWKSet(await publicKeySet()))
  expect(payload).toMatchObject({ sub: caller.userId, org: caller.organisationId, permissions: ['clusters:read'] })
})
