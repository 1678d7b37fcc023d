import { randomUUID } from 'node:crypto'
import type { Secret } from './needles.ts'

/** A request by somebody who has confused what belongs where. */
export interface Slip {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string
}

const json = { 'content-type': 'application/json' }
const asJson = (body: object): Pick<Slip, 'headers' | 'body'> => ({ headers: json, body: JSON.stringify(body) })
const ascii = (text: string): string => text.replaceAll(/[^\u0021-\u007e]/g, '.')

/** A secret at every place of a request where it has no business; none of these may succeed. */
export function slipsOf({ text }: Secret, bearer: string): Slip[] {
  const inPath = encodeURIComponent(text)
  const inHeader = ascii(text)
  const authorization = `Bearer ${bearer}`
  const signedIn = (slip: Slip): Slip => ({ ...slip, headers: { authorization, ...slip.headers } })
  return [
    { method: 'GET', path: `/${inPath}` },
    { method: 'GET', path: `/api/v1/${inPath}` },
    signedIn({ method: 'GET', path: `/api/v1/clusters/${inPath}` }),
    signedIn({ method: 'DELETE', path: `/api/v1/users/${inPath}` }),
    signedIn({ method: 'GET', path: `/api/v1/clusters?page=${inPath}` }),
    signedIn({ method: 'GET', path: `/api/v1/jobs?status=${inPath}` }),
    ...['Bearer', 'Relay', 'Basic', 'Secret'].map((scheme) => ({
      method: 'GET',
      path: '/api/v1/auth/me',
      headers: { authorization: `${scheme} ${inHeader}` },
    })),
    {
      method: 'POST',
      path: '/api/v1/relay/heartbeat',
      headers: { ...json, authorization: `Relay ${inHeader}.${inHeader}.x` },
      body: '{}',
    },
    { method: 'GET', path: '/api/v1/auth/me', headers: { cookie: `session=${inHeader}; ${inHeader}=1` } },
    signedIn({
      method: 'POST',
      path: '/api/v1/clusters',
      headers: { ...json, 'idempotency-key': `${inHeader} ${inHeader}` },
      body: '{}',
    }),
    {
      method: 'GET',
      path: '/health/live',
      headers: { traceparent: inHeader, 'x-request-id': inHeader, 'if-match': inHeader },
    },
    signedIn({ method: 'POST', path: '/api/v1/clusters', ...asJson({ name: 'canary', type: text, [text]: text }) }),
    signedIn({
      method: 'POST',
      path: '/api/v1/jobs',
      ...asJson({ clusterId: text, type: text, payload: { script: 7 } }),
    }),
    signedIn({ method: 'POST', path: '/api/v1/jobs/batch', ...asJson({ jobs: [text, { clusterId: text }] }) }),
    signedIn({
      method: 'POST',
      path: '/api/v1/users',
      ...asJson({ username: 'u', email: text, password: text, roles: [text] }),
    }),
    signedIn({
      method: 'POST',
      path: '/api/v1/webhooks',
      ...asJson({ url: `https://user:${inPath}@example.com/`, events: [text] }),
    }),
    signedIn({
      method: 'POST',
      path: '/api/v1/platform/identity/providers',
      ...asJson({ type: text, clientSecret: text, bindPassword: 7 }),
    }),
    signedIn({ method: 'POST', path: '/api/modules/install', ...asJson({ imageRef: `127.0.0.1:9/ ${text}:1` }) }),
    signedIn({
      method: 'PUT',
      path: '/api/v1/users/me/password',
      ...asJson({ currentPassword: `${text}!`, newPassword: 'short' }),
    }),
    // Whoever types the password into the wrong field.
    { method: 'POST', path: '/api/v1/auth/login', ...asJson({ username: text, password: 'nothing' }) },
    { method: 'POST', path: '/api/v1/auth/login', ...asJson({ username: `nobody-${randomUUID()}`, password: text }) },
    { method: 'POST', path: '/api/v1/auth/refresh', ...asJson({ refreshToken: `${text}x` }) },
    { method: 'POST', path: '/api/v1/auth/oidc/token', ...asJson({ code: text }) },
    {
      method: 'POST',
      path: '/api/v1/relay/enroll',
      ...asJson({ enrollmentToken: `${text}x`, nodes: [{ name: text }] }),
    },
    { method: 'POST', path: '/api/v1/setup/complete', ...asJson({ initialAdminToken: text, adminPassword: text }) },
    signedIn({ method: 'POST', path: '/api/v1/clusters', headers: json, body: `{"name": "${text}` }),
    signedIn({ method: 'POST', path: '/api/v1/clusters', headers: { 'content-type': inHeader }, body: text }),
  ]
}
