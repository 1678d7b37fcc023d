import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import type { Secret } from './search.ts'

interface MisusedRequest {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

const json = { 'content-type': 'application/json' }

function misusedRequests({ text }: Secret, accessToken: string): MisusedRequest[] {
  const encoded = encodeURIComponent(text)
  const ascii = text.replaceAll(/[^\u0021-\u007e]/g, '.')
  const bearer = { authorization: `Bearer ${accessToken}` }
  const get = (path: string, headers: Record<string, string> = {}): MisusedRequest => ({ method: 'GET', path, headers })
  const post = (path: string, body: object | string, headers: Record<string, string> = bearer): MisusedRequest => ({
    method: 'POST',
    path: path.startsWith('/') ? path : `/api/v1/${path}`,
    headers: { ...json, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const anonymous = {}
  return [
    get(`/${encoded}`),
    get(`/api/v1/${encoded}`),
    ...[`clusters/${encoded}`, `clusters?page=${encoded}`, `jobs?status=${encoded}`].map((path) =>
      get(`/api/v1/${path}`, bearer),
    ),
    { ...get(`/api/v1/users/${encoded}`, bearer), method: 'DELETE' },
    ...['Bearer', 'Relay', 'Basic', 'Secret'].map((scheme) =>
      get('/api/v1/auth/me', { authorization: `${scheme} ${ascii}` }),
    ),
    get('/api/v1/auth/me', { cookie: `session=${ascii}; ${ascii}=1` }),
    get('/health/live', { traceparent: ascii, 'x-request-id': ascii, 'if-match': ascii }),
    post('relay/heartbeat', {}, { authorization: `Relay ${ascii}.${ascii}.x` }),
    post('clusters', {}, { ...bearer, 'idempotency-key': `${ascii} ${ascii}` }),
    post('clusters', { name: 'canary', type: text }),
    post('clusters', { [text]: true }),
    post('clusters', `{"name": "${text}`),
    post('clusters', text, { ...bearer, 'content-type': ascii }),
    post('jobs', { clusterId: text, type: text, payload: { script: 7 } }),
    post('jobs/batch', { jobs: [text, { clusterId: text }] }),
    post('users', { username: 'u', email: text, password: text, roles: [text] }),
    post('webhooks', { url: `https://user:${encoded}@example.com/`, events: [text] }),
    post('platform/identity/providers', { type: text, clientSecret: text, bindPassword: 7 }),
    post('/api/modules/install', { imageRef: `127.0.0.1:9/ ${text}:1` }),
    { ...post('users/me/password', { currentPassword: `${text}!`, newPassword: 'short' }), method: 'PUT' },
    post('auth/login', { username: text, password: 'wrong' }, anonymous),
    post('auth/login', { username: `unknown-${randomUUID()}`, password: text }, anonymous),
    post('auth/refresh', { refreshToken: `${text}x` }, anonymous),
    post('auth/oidc/token', { code: text }, anonymous),
    post('relay/enroll', { enrollmentToken: `${text}x`, nodes: [{ name: text }] }, anonymous),
    post('setup/complete', { initialAdminToken: text, adminPassword: text }, anonymous),
  ]
}

async function sendUnchecked(baseUrl: string, { body, ...options }: MisusedRequest): Promise<void> {
  const { hostname, port } = new URL(baseUrl)
  try {
    const sent = request({ hostname, port, agent: false, ...options })
    sent.on('error', () => undefined)
    sent.end(body)
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
  } catch {
    return
  }
}

export async function misuse(baseUrl: string, secrets: readonly Secret[], accessToken: string): Promise<void> {
  for (const secret of secrets)
    await Promise.all(misusedRequests(secret, accessToken).map((each) => sendUnchecked(baseUrl, each)))
}
