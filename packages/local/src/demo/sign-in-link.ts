import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Interceptor } from '../gateway/exchange.ts'
import type { HttpResponse } from '../gateway/result.ts'
import type { Demo } from './folder.ts'

const lifetimeMs = 10 * 60_000
const prefix = '/demo/'

const textResponse = (status: number, text: string): HttpResponse => ({
  status,
  headers: new Map([
    ['content-type', 'text/plain; charset=utf-8'],
    ['cache-control', 'no-store'],
  ]),
  body: Buffer.from(`${text}\n`),
})

export interface SignInLink {
  path: string
  /** Serves GET requests below `/demo/`. Returns undefined for other requests. */
  serve: Interceptor
}

/** Creates a link that signs a browser in once within ten minutes. The link is not stored. */
export function createSignInLink({ username, password }: Demo, serverUrl: string): SignInLink {
  const path = prefix + randomBytes(24).toString('base64url')
  const expectedBytes = Buffer.from(path)
  const expiresAtMs = performance.now() + lifetimeMs
  let isUsed = false

  const isLink = (candidate: string): boolean => {
    const givenBytes = Buffer.from(candidate)
    return givenBytes.length === expectedBytes.length && timingSafeEqual(givenBytes, expectedBytes)
  }

  const serve: Interceptor = async (request, candidate) => {
    if (!candidate.startsWith(prefix) || request.method !== 'GET') return undefined
    if (!isLink(candidate) || isUsed || performance.now() > expiresAtMs) {
      return textResponse(
        410,
        `This link was used or is older than ten minutes. Restart the demo for a new one, or sign in as ${username} with ` +
          'the password in .platform-demo/demo.json.',
      )
    }
    isUsed = true
    const { host, cookie } = request.headers
    const response = await fetch(`${serverUrl}/api/v1/auth/session`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        origin: `http://${host}`,
        'sec-fetch-site': 'same-origin',
        ...(cookie !== undefined && { cookie }),
      },
      body: JSON.stringify({ username, password }),
    })
    if (!response.ok)
      return textResponse(502, `The sign-in failed with status ${response.status}. Was the password changed?`)
    return {
      status: 303,
      headers: new Map<string, string | string[]>([
        ['location', '/dashboard'],
        ['set-cookie', response.headers.getSetCookie()],
        ['cache-control', 'no-store'],
        ['referrer-policy', 'no-referrer'],
      ]),
      body: Buffer.alloc(0),
    }
  }
  return { path, serve }
}
