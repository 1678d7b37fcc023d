import { expect, test, vi } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { outbox } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { parseRecord } from '@platform/core/outbox/record'
import { complete } from '@platform/core/platform/setup'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { newId } from '@platform/core/id'
import { remove } from '@platform/core/identity-providers/manage'
import { configure } from '@platform/core/identity-providers/configure'
import { create as createApiToken } from '@platform/core/accounts/api-token'
import { handler as auth } from '../../functions/auth.ts'
import { handler as sites } from '../../functions/sites.ts'
import { handler as users } from '../../functions/users.ts'
import { ldap } from '../core/support/identity.ts'
import { localPortalHeaders, BrowserSession, publicPortalHeaders } from '../support/browser-session.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import {
  administrator,
  adminToken,
  advanceToNextMinute,
  createColleague,
  password,
  type SignedInUser,
  signInUser,
  bootstrapPlatform,
} from '../support/fixtures.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

await bootstrapPlatform()
const ofSetup = await complete({ ...administrator, initialAdminToken: await adminToken() })
const admin = await signInUser(administrator.adminUsername)

const session = '/api/v1/auth/session'
const me = { target: '/api/v1/auth/me' }
const renewal = jsonRequest(`${session}/refresh`, '')
const signOut = { method: 'DELETE', target: session }
const newSite = () => jsonRequest('/api/v1/sites', { name: newId('site') })

const code = ({ status, json }: TestResponse): [number, string] => [status, json?.error]

/** Somebody new, signed in as a browser. */
async function signedInPage(
  portal: Record<string, string> = publicPortalHeaders,
): Promise<{ page: BrowserSession; person: SignedInUser }> {
  const [page, person] = [new BrowserSession(portal), await createColleague(admin.caller, 'ClusterAdmin')]
  const { status, json } = await page.post(auth, session, person.credentials)
  expect([status, json]).toEqual([200, { expiresIn: 900 }])
  return { page, person }
}

const sessionsOf = async (page: BrowserSession): Promise<{ isCurrent: boolean }[]> =>
  (await page.send(users, { target: '/api/v1/users/me/sessions' })).json.items

async function records(action: string, sessionId: string) {
  const { items } = await query({ pk: outbox(admin.caller.organisationId, '').pk, newestFirst: true, limit: 1000 })
  return items.map(parseRecord).filter(({ audit }) => audit?.action === action && audit.resource === sessionId)
}

const sessionIdOf = (page: BrowserSession): string =>
  (page.cookies.get('__Host-plat_refresh') ?? '').split('.')[0] ?? ''

test.each([
  ['the public portal', publicPortalHeaders, ['__Host-plat_access', '__Host-plat_refresh']],
  ['this machine', localPortalHeaders, ['plat_access', 'plat_refresh']],
])('from a page on %s one signs in, reads, changes, renews and signs out by cookies', async (_, portal, names) => {
  const { page, person } = await signedInPage(portal)
  expect([...page.cookies.keys()]).toEqual(names)
  expect((await page.send(auth, me)).json).toMatchObject({ username: person.username })
  expect((await page.send(sites, newSite())).status).toBe(201)

  const before = new Map(page.cookies)
  expect(await page.send(auth, renewal)).toMatchObject({ status: 200, json: { expiresIn: 900 } })
  for (const name of names) expect(page.cookies.get(name)).not.toBe(before.get(name))
  expect((await page.send(auth, me)).status).toBe(200)

  expect(await page.send(auth, signOut)).toMatchObject({ status: 204, text: '' })
  expect([...page.cookies]).toEqual([])
  expect(code(await page.send(auth, me))).toEqual([401, 'unauthenticated'])
})

test('the session that setup has opened goes on in the browser: it is one session, and its first token is used up', async () => {
  const page = new BrowserSession(publicPortalHeaders)
  const { sessionId } = await verifyAccessToken(ofSetup.accessToken)
  expect((await page.post(auth, session, { refreshToken: ofSetup.refreshToken })).status).toBe(200)
  expect((await sessionsOf(page)).filter(({ isCurrent }) => isCurrent)).toMatchObject([{ id: sessionId }])
  expect(sessionIdOf(page)).toBe(sessionId)
  const again = new BrowserSession(publicPortalHeaders)
  expect(code(await again.post(auth, session, { refreshToken: ofSetup.refreshToken }))).toEqual([
    401,
    'invalid_refresh_token',
  ])
  expect(again.cookies.size).toBe(0)
})

test.each<[string, object]>([
  ['nothing', {}],
  ['a name alone', { username: 'ada' }],
  ['a password alone', { password }],
  ['a password and a code', { username: 'ada', password, code: 'x' }],
  ['a code and a refresh token', { code: 'x', refreshToken: 'y' }],
  ['a name and a code', { username: 'ada', code: 'x' }],
  ['a code that is none', { code: 7 }],
  ['an empty refresh token', { refreshToken: '' }],
  ['null', { username: null, password: null }],
])('with %s nobody signs in: 400', async (_, body) => {
  const answer = await new BrowserSession(publicPortalHeaders).post(auth, session, body)
  expect(code(answer)).toEqual([400, 'validation_failed'])
  expect(answer.cookies).toEqual([])
})

test.each([
  [{ username: administrator.adminUsername, password: 'wrong password' }, 'invalid_credentials'],
  [{ code: 'x' }, 'sign_in_code_invalid'],
  [{ refreshToken: 'x' }, 'invalid_refresh_token'],
])('with a wrong proof nobody signs in, and who is signed in stays so: %j', async (body, error) => {
  const { page } = await signedInPage()
  const answer = await page.post(auth, session, body)
  expect(code(answer)).toEqual([401, error])
  expect(answer.cookies).toEqual([])
  expect((await page.send(auth, me)).status).toBe(200)
})

test('a name without a password here is tried with the directories, as at any sign-in', async () => {
  const { id } = await configure(admin.caller, { ...ldap, url: 'ldaps://directory.invalid' })
  const answer = await new BrowserSession(publicPortalHeaders).post(auth, session, {
    username: newId('user'),
    password,
  })
  expect(code(answer)).toEqual([503, 'directory_unreachable'])
  expect(answer.cookies).toEqual([])
  await remove(admin.caller, id)
})

test('failed sign-ins of browsers and of others are counted together', async () => {
  const { credentials } = await createColleague(admin.caller, 'Viewer')
  const wrong = { ...credentials, password: 'wrong password' }
  advanceToNextMinute()
  const answers: TestResponse[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    answers.push(await new BrowserSession(publicPortalHeaders).post(auth, session, wrong))
    answers.push(await send(auth, jsonRequest('/api/v1/auth/login', wrong)))
  }
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429])
  expect((await new BrowserSession(publicPortalHeaders).post(auth, session, credentials)).status).toBe(429)
})

test('an API token in the cookie is none', async () => {
  const page = new BrowserSession(publicPortalHeaders)
  const { token } = await createApiToken(admin.caller, { name: newId('tok') })
  page.cookies.set('__Host-plat_access', token)
  expect(code(await page.send(auth, me))).toEqual([401, 'unauthenticated'])
  expect((await send(auth, { ...me, headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
})

test('where the access cookie has expired the refresh cookie gets another one; where a browser still has it 401 says so', async () => {
  const { page } = await signedInPage()
  shiftClock(16 * 60_000)
  try {
    expect(code(await page.send(auth, me))).toEqual([401, 'token_expired'])
    page.cookies.delete('__Host-plat_access')
    expect(code(await page.send(auth, me))).toEqual([401, 'unauthenticated'])
    expect((await page.send(auth, renewal)).status).toBe(200)
    expect((await page.send(auth, me)).status).toBe(200)
  } finally {
    shiftClock(-16 * 60_000)
  }
})

test.each([
  ['no cookie', {}],
  ['a cookie that is none', { cookie: '__Host-plat_refresh=x' }],
  ['a session that does not exist', { cookie: `__Host-plat_refresh=${newId('sess')}.abcdefghijkl.x` }],
  ['a plain cookie, as a neighbour could set it', { cookie: `plat_refresh=${ofSetup.refreshToken}` }],
])('renewing with %s answers 401 and takes away what there is', async (_, cookie) => {
  const { json, ...answer } = await send(auth, { ...renewal, headers: { ...publicPortalHeaders, ...cookie } })
  expect([answer.status, json.error]).toEqual([401, 'invalid_refresh_token'])
  expect(answer.cookies).toHaveLength(2)
  for (const each of answer.cookies) expect(each).toMatch(/^__Host-plat_\w+=; .*Max-Age=0$/)
})

test('signing out ends the session though the access cookie has expired, is on record, and may be repeated', async () => {
  const { page, person } = await signedInPage()
  const sessionId = sessionIdOf(page)
  page.cookies.delete('__Host-plat_access')
  const cookies = page.cookieHeader()
  for (let time = 0; time < 2; time++) {
    const answer = await page.send(auth, { ...signOut, headers: cookies })
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(answer.cookies).toHaveLength(2)
  }
  const [closed, ...others] = await records('session.close', sessionId)
  expect([closed, others]).toMatchObject([{ actor: { id: person.id }, address: '192.0.2.1' }, []])
  expect(code(await send(auth, { ...renewal, headers: { ...publicPortalHeaders, ...cookies } }))).toEqual([
    401,
    'invalid_refresh_token',
  ])
  expect((await send(auth, { ...signOut, headers: publicPortalHeaders })).status).toBe(204)
})
