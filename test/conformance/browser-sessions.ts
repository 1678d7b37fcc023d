import assert from 'node:assert/strict'
import { type Answer, answered } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Journeys, Platform } from './support/platform.ts'

const path = '/api/v1/auth/session'
const me = '/api/v1/auth/me'

/** What a browser says of a request of a page of this platform, and of one that a page on another port causes. */
const ofOwnPage = ({ options }: Platform) => ({
  origin: new URL(options.baseUrl).origin,
  'sec-fetch-site': 'same-origin',
})
const ofOtherPage = ({ options }: Platform) => {
  const { protocol, hostname } = new URL(options.baseUrl)
  return { origin: `${protocol}//${hostname}:9`, 'sec-fetch-site': 'same-site' }
}

type Headers = Record<string, string>

const cookiesOf = ({ headers }: Answer): Headers => ({
  cookie: headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; '),
})

/** Signs in as a browser: a client without a token, and the cookies that it has got. */
async function signedIn(platform: Platform): Promise<{ client: Client; own: Headers; cookies: Headers }> {
  const { username, password } = await platform.newPerson('Viewer')
  const [client, own] = [platform.anonymous, ofOwnPage(platform)]
  const answer = await client.post(path, { username, password }, own)
  assert.equal(answered(answer, 200).expiresIn, 900)
  for (const cookie of answer.headers.getSetCookie()) assert.match(cookie, /; HttpOnly; SameSite=Strict; Path=\//)
  return { client, own, cookies: cookiesOf(answer) }
}

const renew = (client: Client, headers: Headers) => client.send('POST', `${path}/refresh`, { headers })

export const browserSessions: Journeys = {
  'a browser signs in, reads, renews and signs out by cookies that no script can read': async (platform) => {
    const { client, own, cookies } = await signedIn(platform)
    answered(await client.get(me, { ...own, ...cookies }), 200)
    const renewed = await renew(client, { ...own, ...cookies })
    assert.equal(answered(renewed, 200).expiresIn, 900)
    const now = cookiesOf(renewed)
    answered(await client.get(me, { ...own, ...now }), 200)
    for (let time = 0; time < 2; time++) {
      const left = await client.send('DELETE', path, { headers: { ...own, ...now } })
      answered(left, 204)
      for (const cookie of left.headers.getSetCookie()) assert.match(cookie, /Max-Age=0/)
    }
    answered(await renew(client, { ...own, ...now }), 401, 'invalid_refresh_token')
  },

  'what the page of another origin causes is refused, and leaves the session as it is': async (platform) => {
    const { client, own, cookies } = await signedIn(platform)
    const headers = { ...ofOtherPage(platform), ...cookies }
    for (const [method, target] of [
      ['GET', me],
      ['PATCH', '/api/v1/notifications'],
      ['POST', '/api/v1/auth/logout'],
      ['POST', `${path}/refresh`],
      ['DELETE', path],
    ] as const) {
      answered(await client.send(method, target, { headers }), 403, 'cross_origin_request')
    }
    answered(await client.post(path, { username: 'ada', password: 'ada' }, headers), 403, 'cross_origin_request')
    answered(await renew(client, { ...own, ...cookies }), 200)
  },

  'a refresh cookie that is used twice ends the session, and the browser forgets it': async (platform) => {
    const { client, own, cookies } = await signedIn(platform)
    const now = cookiesOf(await renew(client, { ...own, ...cookies }))
    const again = await renew(client, { ...own, ...cookies })
    answered(again, 401, 'invalid_refresh_token')
    assert.equal(again.headers.getSetCookie().length, 2)
    answered(await renew(client, { ...own, ...now }), 401, 'invalid_refresh_token')
  },
}
