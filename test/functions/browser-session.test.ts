import { expect, test, vi } from 'vitest'
import { create as createApiToken } from '@platform/core/accounts/api-token'
import { outboxPartitions } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { configure } from '@platform/core/identity-providers/configure'
import { remove } from '@platform/core/identity-providers/manage'
import { findProvider } from '@platform/core/identity-providers/provider'
import { parseRecord } from '@platform/core/outbox/record'
import { complete } from '@platform/core/platform/setup'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { handler as auth } from '../../functions/auth.ts'
import { handler as sites } from '../../functions/sites.ts'
import { handler as users } from '../../functions/users.ts'
import { ldap } from '../core/support/identity.ts'
import { BrowserSession, localPortalHeaders, publicPortalHeaders } from '../support/browser-session.ts'
import { advanceClock } from '../support/clock.ts'
import * as fixtures from '../support/fixtures.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

const { administrator, createColleague, password } = fixtures
await fixtures.bootstrapPlatform()
const setupTokens = await complete({ ...administrator, initialAdminToken: await fixtures.adminToken() })
const admin = await fixtures.signInUser(administrator.adminUsername)

const session = '/api/v1/auth/session'
const accountRequest = { target: '/api/v1/auth/me' }
const refresh = jsonRequest(`${session}/refresh`, '')
const signOut = { method: 'DELETE', target: session }
const newSite = () => jsonRequest('/api/v1/sites', { name: newId('site') })
const newPage = () => new BrowserSession(publicPortalHeaders)

const statusAndError = ({ status, json }: TestResponse): [number, string] => [status, json?.error]

async function signedInPage(portal: Record<string, string> = publicPortalHeaders) {
  const [page, user] = [new BrowserSession(portal), await createColleague(admin.caller, 'ClusterAdmin')]
  const { status, json } = await page.post(auth, session, user.credentials)
  expect([status, json]).toEqual([200, { expiresIn: 900 }])
  return { page, user }
}

const sessionIdOf = (page: BrowserSession): string =>
  (page.cookies.get('__Host-plat_refresh') ?? '').split('.')[0] ?? ''

test.each([
  ['the public portal', publicPortalHeaders, ['__Host-plat_access', '__Host-plat_refresh']],
  ['this machine', localPortalHeaders, ['plat_access', 'plat_refresh']],
])('signs in, reads, writes, refreshes and signs out by cookies on %s', async (_, portal, names) => {
  const { page, user } = await signedInPage(portal)
  const deviceCookie = names[0]!.replace('access', 'device')
  expect([...page.cookies.keys()]).toEqual([...names, deviceCookie])
  expect((await page.send(auth, accountRequest)).json).toMatchObject({ username: user.username })
  expect((await page.send(sites, newSite())).status).toBe(201)
  const cookiesBefore = new Map(page.cookies)
  expect(await page.send(auth, refresh)).toMatchObject({ status: 200, json: { expiresIn: 900 } })
  for (const name of names) expect(page.cookies.get(name)).not.toBe(cookiesBefore.get(name))
  expect((await page.send(auth, accountRequest)).status).toBe(200)
  expect(await page.send(auth, signOut)).toMatchObject({ status: 204, text: '' })
  expect([...page.cookies.keys()]).toEqual([deviceCookie])
  expect(statusAndError(await page.send(auth, accountRequest))).toEqual([401, 'unauthenticated'])
})

test('continues the session of setup by its refresh token, once; a retry with its key receives the same cookies', async () => {
  const page = newPage()
  const { sessionId } = await verifyAccessToken(setupTokens.accessToken)
  const { refreshToken } = setupTokens
  const begin = jsonRequest(session, { refreshToken }, { 'idempotency-key': 'key-of-the-setup' })
  const { status, cookies } = await page.send(auth, begin)
  expect([status, cookies.length]).toEqual([200, 3])
  expect((await newPage().send(auth, begin)).cookies).toEqual(cookies)
  const keyed = { ...refresh, headers: { ...refresh.headers, 'idempotency-key': 'key-of-the-refresh' } }
  const lostSession = new BrowserSession(publicPortalHeaders, page.cookies)
  const renewal = await lostSession.send(auth, keyed)
  expect(await page.send(auth, keyed)).toMatchObject({ status: 200, cookies: renewal.cookies })
  const invalidRequest = { ...refresh, headers: { ...refresh.headers, 'idempotency-key': 'ü' } }
  expect(statusAndError(await page.send(auth, invalidRequest))).toEqual([400, 'validation_failed'])
  const { items } = (await page.send(users, { target: '/api/v1/users/me/sessions' })).json
  expect(items.filter(({ isCurrent }: any) => isCurrent)).toMatchObject([{ id: sessionId }])
  expect(sessionIdOf(page)).toBe(sessionId)
  const secondPage = newPage()
  expect(statusAndError(await secondPage.post(auth, session, { refreshToken }))).toEqual([401, 'invalid_refresh_token'])
  expect(secondPage.cookies.size).toBe(0)
})

test.each<[body: object]>([
  [{}],
  [{ username: 'ada' }],
  [{ password }],
  [{ username: 'ada', password, code: 'x' }],
  [{ code: 'x', refreshToken: 'y' }],
  [{ code: 7 }],
  [{ refreshToken: '' }],
  [{ username: null, password: null }],
])('rejects the sign-in %j', async (body) => {
  const response = await newPage().post(auth, session, body)
  expect(statusAndError(response)).toEqual([400, 'validation_failed'])
  expect(response.cookies).toEqual([])
})

test.each([
  [{ username: administrator.adminUsername, password: 'wrong password' }, 'invalid_credentials'],
  [{ code: 'x' }, 'sign_in_code_invalid'],
  [{ refreshToken: 'x' }, 'invalid_refresh_token'],
])('keeps the session after the failed sign-in %j', async (body, error) => {
  const { page } = await signedInPage()
  const response = await page.post(auth, session, body)
  expect(statusAndError(response)).toEqual([401, error])
  expect(response.cookies).toEqual([])
  expect((await page.send(auth, accountRequest)).status).toBe(200)
})

test('tries unknown users with the directories', async () => {
  const { id } = await configure(admin.caller, { ...ldap, url: 'ldaps://directory.invalid' })
  const response = await newPage().post(auth, session, { username: newId('user'), password })
  expect(statusAndError(response)).toEqual([401, 'invalid_credentials'])
  expect((await findProvider(id))?.failures).toContain('"unreachable"')
  await remove(admin.caller, id)
})

test('counts failed sign-ins of browsers and API clients together', async () => {
  const { credentials } = await createColleague(admin.caller, 'Viewer')
  const wrongCredentials = { ...credentials, password: 'wrong password' }
  fixtures.advanceToNextMinute()
  const statuses: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    statuses.push((await newPage().post(auth, session, wrongCredentials)).status)
    statuses.push((await send(auth, jsonRequest('/api/v1/auth/login', wrongCredentials))).status)
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
  expect((await newPage().post(auth, session, credentials)).status).toBe(429)
})

test('rejects an API token in the cookie', async () => {
  const page = newPage()
  const { token } = await createApiToken(admin.caller, { name: newId('tok') })
  page.cookies.set('__Host-plat_access', token)
  expect(statusAndError(await page.send(auth, accountRequest))).toEqual([401, 'unauthenticated'])
})

test('refreshes after the access cookie has expired', async () => {
  const { page } = await signedInPage()
  advanceClock(16 * 60_000)
  expect(statusAndError(await page.send(auth, accountRequest))).toEqual([401, 'token_expired'])
  page.cookies.delete('__Host-plat_access')
  expect(statusAndError(await page.send(auth, accountRequest))).toEqual([401, 'unauthenticated'])
  expect((await page.send(auth, refresh)).status).toBe(200)
  expect((await page.send(auth, accountRequest)).status).toBe(200)
})

test.each([
  ['no cookie', {}],
  ['an invalid cookie', { cookie: '__Host-plat_refresh=x' }],
  ['an unknown session', { cookie: `__Host-plat_refresh=${newId('sess')}.abcdefghijkl.x` }],
  ['a cookie that a sibling domain could set', { cookie: `plat_refresh=${setupTokens.refreshToken}` }],
])('rejects a refresh with %s and clears the cookies', async (_, cookie) => {
  const response = await send(auth, { ...refresh, headers: { ...publicPortalHeaders, ...cookie } })
  expect(statusAndError(response)).toEqual([401, 'invalid_refresh_token'])
  expect(response.cookies).toHaveLength(2)
  for (const each of response.cookies) expect(each).toMatch(/^__Host-plat_\w+=; .*Max-Age=0$/)
})

test('signs out without an access cookie, repeatably, and records it', async () => {
  const { page, user } = await signedInPage()
  const sessionId = sessionIdOf(page)
  page.cookies.delete('__Host-plat_access')
  const cookies = page.cookieHeader()
  for (let time = 0; time < 2; time++) {
    const response = await page.send(auth, { ...signOut, headers: cookies })
    expect([response.status, response.text, response.cookies.length]).toEqual([204, '', 2])
  }
  const pages = await Promise.all(
    outboxPartitions(admin.caller.organisationId).map((pk) => query({ pk, isNewestFirst: true, limit: 1000 })),
  )
  const items = pages.flatMap((page) => page.items)
  const closeRecords = items.map(parseRecord).filter(({ audit }) => audit?.resource === sessionId)
  const expected = { actor: { id: user.id }, address: '192.0.2.1', audit: { action: 'session.close' } }
  expect(closeRecords.filter(({ audit }) => audit?.action === 'session.close')).toMatchObject([expected])
  const repeatedRefresh = await send(auth, { ...refresh, headers: { ...publicPortalHeaders, ...cookies } })
  expect(statusAndError(repeatedRefresh)).toEqual([401, 'invalid_refresh_token'])
  expect((await send(auth, { ...signOut, headers: publicPortalHeaders })).status).toBe(204)
})

test.each([
  ['a sibling domain', { ...publicPortalHeaders, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }],
  ['a client without an origin', { host: publicPortalHeaders.host }],
])('rejects requests with cookies from %s without a change', async (_, foreign) => {
  const { page, user } = await signedInPage()
  const writesBefore = writes()
  const headers = { ...foreign, ...page.cookieHeader() }
  const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' }
  const responses = [
    await send(auth, jsonRequest(session, user.credentials, headers)),
    await send(auth, { method: 'POST', target: session, body: 'username=a&password=b', headers: form }),
    await send(auth, { ...refresh, headers }),
    await send(auth, { ...signOut, headers }),
    await send(auth, { method: 'POST', target: '/api/v1/auth/logout', headers }),
    await send(sites, { ...newSite(), headers: { ...headers, 'content-type': 'text/plain' } }),
  ]
  for (const response of responses) {
    expect(statusAndError(response)).toEqual([403, 'cross_origin_request'])
    expect(response.cookies).toEqual([])
  }
  expect(writes()).toBe(writesBefore)
  expect((await page.send(auth, accountRequest)).status).toBe(200)
  expect((await page.send(auth, refresh)).status).toBe(200)
})

test.each(['192.168.1.5:8080', 'evil.example:8080'])('requires HTTPS from pages of the host %s', async (host) => {
  const page = new BrowserSession({ host, origin: `http://${host}` })
  const response = await page.post(auth, session, admin.credentials)
  expect(statusAndError(response)).toEqual([403, 'https_required'])
  expect(response.cookies).toEqual([])
})

test('a bearer token needs no origin and takes precedence over the cookie', async () => {
  const { page, user } = await signedInPage()
  const foreignHeaders = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const headers = { ...foreignHeaders, ...page.cookieHeader(), authorization: `Bearer ${admin.accessToken}` }
  expect((await send(auth, { ...accountRequest, headers })).json.username).toBe(admin.username)
  for (const authorization of ['', 'Bearer x.y.z', 'Basic YTpi']) {
    expect((await page.send(auth, { ...accountRequest, headers: { authorization } })).status).toBe(401)
  }
  expect((await page.send(auth, accountRequest)).json.username).toBe(user.username)
})
