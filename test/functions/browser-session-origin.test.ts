import { expect, test, vi } from 'vitest'
import { newId } from '@platform/core/id'
import { handler as auth } from '../../functions/auth.ts'
import { handler as sites } from '../../functions/sites.ts'
import { localPortalHeaders, BrowserSession, publicPortalHeaders } from '../support/browser-session.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { createColleague, setUpPlatform } from '../support/fixtures.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

/** What browsers send with the cookies of their users though no page of the platform has asked for it. */

const admin = await setUpPlatform()

const session = '/api/v1/auth/session'
const me = { target: '/api/v1/auth/me' }
const renewal = { method: 'POST', target: `${session}/refresh` }
const signOut = { method: 'DELETE', target: session }
const newSite = () => jsonRequest('/api/v1/sites', { name: newId('site') })

const code = ({ status, json }: TestResponse): [number, string] => [status, json?.error]

/** Somebody new, signed in as a browser. */
async function signedInPage(portal: Record<string, string> = publicPortalHeaders) {
  const [page, person] = [new BrowserSession(portal), await createColleague(admin.caller, 'ClusterAdmin')]
  expect((await page.post(auth, session, person.credentials)).status).toBe(200)
  return { page, person }
}

/** What a browser sends with the cookies of its user when another page has it do so. */
const elsewhere: [string, Record<string, string>][] = [
  [
    'another port of the machine',
    { ...localPortalHeaders, origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' },
  ],
  ['a sibling domain', { ...publicPortalHeaders, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }],
  ['another site', { ...publicPortalHeaders, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
  ['an older browser on another site', { host: publicPortalHeaders.host, origin: 'https://evil.example' }],
  ['a program that is no browser', { host: publicPortalHeaders.host }],
]

test.each(elsewhere)('what %s causes is refused with 403, and changes and sets nothing', async (_, said) => {
  const { page, person } = await signedInPage(
    said['host'] === localPortalHeaders.host ? localPortalHeaders : publicPortalHeaders,
  )
  const before = writes()
  const headers = { ...said, ...page.cookieHeader() }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const caused = [
    await send(auth, jsonRequest(session, person.credentials, headers)),
    await send(auth, {
      method: 'POST',
      target: session,
      body: 'username=a&password=b',
      headers: { ...headers, ...form },
    }),
    await send(auth, { ...renewal, headers }),
    await send(auth, { ...signOut, headers }),
    await send(auth, { method: 'POST', target: '/api/v1/auth/logout', headers }),
    await send(sites, { ...newSite(), headers: { ...headers, 'content-type': 'application/json' } }),
    await send(sites, { ...newSite(), headers: { ...headers, 'content-type': 'text/plain' } }),
  ]
  for (const answer of caused) {
    expect(code(answer)).toEqual([403, 'cross_origin_request'])
    expect(answer.cookies).toEqual([])
  }
  expect(writes()).toBe(before)
  expect((await page.send(auth, me)).status).toBe(200)
  expect((await page.send(auth, renewal)).status).toBe(200)
})

test('a page that came by plain HTTP over a network is told to use https, under whatever name it came', async () => {
  for (const host of ['192.168.1.5:8080', 'evil.example:8080']) {
    const page = new BrowserSession({ host, origin: `http://${host}` })
    const answer = await page.post(auth, session, admin.credentials)
    expect(code(answer)).toEqual([403, 'https_required'])
    expect(answer.cookies).toEqual([])
  }
})

test('a bearer token needs no origin, and goes before the cookie, which does not make up for a bad one', async () => {
  const { page, person } = await signedInPage()
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const asAdmin = { ...foreign, ...page.cookieHeader(), authorization: `Bearer ${admin.accessToken}` }
  expect((await send(auth, { ...me, headers: asAdmin })).json.username).toBe(admin.username)
  for (const authorization of ['', 'Bearer x.y.z', 'Basic YTpi']) {
    expect((await page.send(auth, { ...me, headers: { authorization } })).status).toBe(401)
  }
  expect((await page.send(auth, me)).json.username).toBe(person.username)
})

test('other methods of the session are unknown paths, and tell no other origin that they are not', async () => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH']) {
    const { status, headers } = await send(auth, {
      method,
      target: session,
      headers: { origin: 'https://evil.example' },
    })
    expect([status, headers['access-control-allow-origin']]).toEqual([404, undefined])
  }
})
