import { errors } from '@platform/contract/errors'
import { routes } from '@platform/contract/index'
import { capabilitiesOf } from '@platform/contract/endpoint'
import { isPermission } from '@platform/contract/permission'
import { describe, expect, test } from 'vitest'
import { addressOf, hidden, parametersOf } from './support/paths.ts'

/** What needs no token. Whoever makes another operation public has to say so here. */
const publicPaths = [
  /^\/health\//,
  /^\/api\/v1\/setup\//,
  /^\/api\/v1\/auth\/(login|local-login|refresh)$/,
  // What a browser brings is its cookies.
  /^\/api\/v1\/auth\/session(\/refresh)?$/,
  // Browsers that sign in with a provider: what they bring is a state, a code and a cookie.
  /^\/api\/v1\/auth\/(providers|oidc\/token|oidc\/\{id\}\/(authorize|callback))$/,
  /^\/api\/v1\/platform\/identity\/consent-callback$/,
  /^\/api\/v1\/relay\/enroll$/,
  /^\/api\/v1\/openapi\.json$/,
  /^\/\.well-known\/jwks\.json$/,
  /^\/docs$/,
  /^\/relay\/relay\.mjs$/,
  /^\/schemas\//,
  // A browser has to know whether to show the wizard or the sign-in, and for which platform.
  /^\/api\/v1\/portal\/configuration$/,
]

test('no two operations share a method and a path', () => {
  const addresses = routes.map(({ endpoint }) => addressOf(endpoint))
  expect(new Set(addresses).size).toBe(addresses.length)
})

test('no two operations share a name', () => {
  const names = routes.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
})

test('a literal segment wins over a parameter: it comes first in the table', () => {
  expect(hidden(routes.map(({ endpoint }) => endpoint))).toEqual([])
})

test('an operation that a parameter would swallow is found', () => {
  const swallowing = { method: 'get', path: '/jobs/{id}' } as const
  const swallowed = { method: 'get', path: '/jobs/batch' } as const
  expect(hidden([swallowing, swallowed])).toEqual(['get /jobs/batch'])
  expect(hidden([swallowed, swallowing])).toEqual([])
})

describe.for(routes)('$operationId', ({ operationId, endpoint }) => {
  const { method, path, access, request, responses, errors: fails = [] } = endpoint

  test('has a name that is an identifier', () => {
    expect(operationId).toMatch(/^[a-z][A-Za-z]+$/)
  })

  test('declares exactly the parameters of its path', () => {
    expect(Object.keys(request?.params?.shape ?? {})).toEqual(parametersOf(path))
  })

  test('answers with success at least once; what leads browsers on, with that alone', () => {
    const statuses = Object.keys(responses)
    expect(statuses.some((status) => status.startsWith('2')) || String(statuses) === '302').toBe(true)
  })

  test('takes a body only where a method has one', () => {
    if (request?.body) expect(['post', 'put', 'patch']).toContain(method)
  })

  test('answers 204 and 302 without a body, and nothing else without one', () => {
    for (const [status, { content }] of Object.entries(responses)) {
      expect(content === undefined).toBe(['204', '302'].includes(status))
    }
  })

  test('fails only with codes of the closed list, each named once', () => {
    for (const code of fails) expect(Object.keys(errors)).toContain(code)
    expect(new Set(fails).size).toBe(fails.length)
  })

  test('may reach the store wherever a caller is looked up or an answer is kept', () => {
    const capabilities = capabilitiesOf(endpoint)
    expect(new Set(capabilities).size).toBe(capabilities.length)
    if (access !== 'public') expect(capabilities).toContain('table:read')
    if (method === 'post' && access !== 'public') expect(capabilities).toContain('table:write')
  })

  test('is public where the contract says so, and guarded elsewhere', () => {
    expect(publicPaths.some((pattern) => pattern.test(path))).toBe(access === 'public')
    if (access !== 'public' && !['user', 'session', 'relay'].includes(access)) expect(isPermission(access)).toBe(true)
  })
})
