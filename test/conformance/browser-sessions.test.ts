import { expect } from 'vitest'
import { type ApiResponse, expectStatus } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/auth/session'
const mePath = '/api/v1/auth/me'

const sameOriginHeaders = ({ options }: Platform) => ({
  origin: new URL(options.baseUrl).origin,
  'sec-fetch-site': 'same-origin',
})

type Headers = Record<string, string>

const cookiesOf = ({ headers }: ApiResponse): Headers => ({
  cookie: headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; '),
})

async function signedIn(platform: Platform): Promise<{ client: Client; sameOrigin: Headers; cookies: Headers }> {
  const { username, password } = await platform.newUser('Viewer')
  const [client, sameOrigin] = [platform.anonymous, sameOriginHeaders(platform)]
  const response = await client.post(path, { username, password }, sameOrigin)
  expect(expectStatus(response, 200).expiresIn).toBe(900)
  for (const cookie of response.headers.getSetCookie()) expect(cookie).toMatch(/; HttpOnly; SameSite=Strict; Path=\//)
  return { client, sameOrigin, cookies: cookiesOf(response) }
}

const renew = (client: Client, headers: Headers) => client.send('POST', `${path}/refresh`, { headers })

test('signs in, reads, refreshes and signs out with HttpOnly cookies', async ({ platform }) => {
  const { client, sameOrigin, cookies } = await signedIn(platform)
  expectStatus(await client.get(mePath, { ...sameOrigin, ...cookies }), 200)
  const renewal = await renew(client, { ...sameOrigin, ...cookies })
  expect(expectStatus(renewal, 200).expiresIn).toBe(900)
  const now = cookiesOf(renewal)
  expectStatus(await client.get(mePath, { ...sameOrigin, ...now }), 200)
  for (let attempt = 0; attempt < 2; attempt++) {
    const signOut = await client.send('DELETE', path, { headers: { ...sameOrigin, ...now } })
    expectStatus(signOut, 204)
    for (const cookie of signOut.headers.getSetCookie()) expect(cookie).toMatch(/Max-Age=0/)
  }
  expectStatus(await renew(client, { ...sameOrigin, ...now }), 401, 'invalid_refresh_token')
})

test('ends the session when a refresh cookie is reused and clears the cookies', async ({ platform }) => {
  const { client, sameOrigin, cookies } = await signedIn(platform)
  const now = cookiesOf(await renew(client, { ...sameOrigin, ...cookies }))
  const secondRenewal = await renew(client, { ...sameOrigin, ...cookies })
  expectStatus(secondRenewal, 401, 'invalid_refresh_token')
  expect(secondRenewal.headers.getSetCookie().length).toBe(2)
  expectStatus(await renew(client, { ...sameOrigin, ...now }), 401, 'invalid_refresh_token')
})
