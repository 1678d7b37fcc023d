import { readdirSync } from 'node:fs'
import { errors } from '@platform/contract/errors'
import { routePaths, routes } from '@platform/contract/index'
import { allowsUnknownInput, bodySchemaOf, capabilitiesOf } from '@platform/contract/endpoint'
import { isPermission } from '@platform/contract/permission'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { operationKey, findHidden, parametersOf } from './support/paths.ts'

/** Paths that need no access token. Add every new public operation here. */
const publicPaths = [
  /^\/health\//,
  /^\/api\/v1\/setup\//,
  /^\/api\/v1\/auth\/(login|local-login|refresh)$/,
  // Browser sessions use cookies instead of bearer tokens.
  /^\/api\/v1\/auth\/session(\/refresh)?$/,
  // Sign-in with an identity provider has no token yet: state, code and cookie protect its steps.
  /^\/api\/v1\/auth\/(providers|oidc\/token|oidc\/\{id\}\/(authorize|callback))$/,
  /^\/api\/v1\/platform\/identity\/consent-callback$/,
  /^\/api\/v1\/relay\/enroll$/,
  /^\/api\/v1\/openapi\.json$/,
  /^\/\.well-known\/jwks\.json$/,
  /^\/docs$/,
  /^\/relay\/relay\.mjs$/,
  /^\/schemas\//,
  // Browsers request the configuration before sign-in.
  /^\/api\/v1\/portal\/configuration$/,
]

test('the table contains every endpoint that a file of the contract exports', async () => {
  const folder = new URL('../../packages/contract/src/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  const exports = await Promise.all(files.map(async (name) => Object.entries(await import(new URL(name, folder).href))))
  const endpoints = exports.flat().filter(([, value]) => Object.hasOwn(Object(value), 'access'))
  expect(endpoints.map(([name]) => name).toSorted()).toEqual(routes.map(({ operationId }) => operationId).toSorted())
})

test('no two operations share a method and a path', () => {
  const operationKeys = routes.map(({ endpoint }) => operationKey(endpoint))
  expect(new Set(operationKeys).size).toBe(operationKeys.length)
})

test('one function serves all methods of a path', () => {
  for (const [path, name] of routePaths) {
    const owners = routes.filter(({ endpoint }) => endpoint.path === path).map((route) => route.function)
    expect([path, new Set(owners)]).toEqual([path, new Set([name])])
  }
})

test('request bodies and queries reject unknown names, except callbacks and relays', () => {
  const isLoose = (schema?: z.ZodObject) => schema !== undefined && !(schema.def.catchall instanceof z.ZodNever)
  const looseRoutes = routes.filter(
    ({ endpoint }) => isLoose(bodySchemaOf(endpoint)) || isLoose(endpoint.request?.query),
  )
  const unexpectedOperations = looseRoutes
    .filter(({ endpoint }) => !allowsUnknownInput(endpoint))
    .map(({ operationId }) => operationId)
  expect(unexpectedOperations).toEqual(['callback', 'consentReturned', 'consentPosted'])
})

test('no two operations share a name', () => {
  const names = routes.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
})

test('the table lists literal segments before parameters', () => {
  expect(findHidden(routes.map(({ endpoint }) => endpoint))).toEqual([])
})

test('detects an operation that a parameter hides', () => {
  const parameterised = { method: 'get', path: '/jobs/{id}' } as const
  const literal = { method: 'get', path: '/jobs/batch' } as const
  expect(findHidden([parameterised, literal])).toEqual(['get /jobs/batch'])
  expect(findHidden([literal, parameterised])).toEqual([])
})

describe.for(routes)('$operationId', ({ operationId, endpoint }) => {
  const { method, path, access, request, responses, errors: errorCodes = [] } = endpoint

  test('has an identifier as operation id', () => {
    expect(operationId).toMatch(/^[a-z][A-Za-z]+$/)
  })

  test('declares exactly the parameters of its path', () => {
    expect(Object.keys(request?.params?.shape ?? {})).toEqual(parametersOf(path))
  })

  test('has a success response or only a redirect', () => {
    const statuses = Object.keys(responses)
    expect(statuses.some((status) => status.startsWith('2')) || String(statuses) === '302').toBe(true)
  })

  test('has a body only with POST, PUT or PATCH', () => {
    if (request?.body) expect(['post', 'put', 'patch']).toContain(method)
  })

  test('has no body exactly in responses with 204 and 302', () => {
    for (const [status, { content }] of Object.entries(responses)) {
      expect(content === undefined).toBe(['204', '302'].includes(status))
    }
  })

  test('lists known error codes without duplicates', () => {
    for (const code of errorCodes) expect(Object.keys(errors)).toContain(code)
    expect(new Set(errorCodes).size).toBe(errorCodes.length)
  })

  test('has the table capabilities for authentication and idempotency', () => {
    const capabilities = capabilitiesOf(endpoint)
    expect(new Set(capabilities).size).toBe(capabilities.length)
    if (access !== 'public') expect(capabilities).toContain('table:read')
    if (method === 'post' && access !== 'public') expect(capabilities).toContain('table:write')
  })

  test('is public only if this test lists its path', () => {
    expect(publicPaths.some((pattern) => pattern.test(path))).toBe(access === 'public')
    if (access !== 'public' && !['user', 'session', 'relay'].includes(access)) expect(isPermission(access)).toBe(true)
  })
})
