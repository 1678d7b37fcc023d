import { routes } from '@platform/contract/index'
import { apiFunctions } from '@platform/core/updates/function-names'
import { getEvent, readiness, smokeRequests } from '@platform/worker/updates/smoke-requests'
import { expect, test } from 'vitest'

/** What a new release is asked before anybody else asks it something. */

const pathOf = (name: string) => smokeRequests.find(({ functionName }) => functionName === name)

test('a request is as API Gateway sends it: a GET of nobody', () => {
  expect(getEvent('/api/v1/sites')).toEqual({
    version: '2.0',
    routeKey: '$default',
    rawPath: '/api/v1/sites',
    rawQueryString: '',
    headers: { host: 'platform', 'user-agent': 'platform-update' },
    requestContext: {
      http: {
        method: 'GET',
        path: '/api/v1/sites',
        protocol: 'HTTP/1.1',
        sourceIp: '100::',
        userAgent: 'platform-update',
      },
      routeKey: '$default',
      stage: '$default',
    },
    isBase64Encoded: false,
  })
})

test('every function that answers requests is asked once, and two of them have one right answer', () => {
  expect(smokeRequests.map(({ functionName }) => functionName).toSorted()).toEqual(apiFunctions.toSorted())
  expect(smokeRequests.filter(({ status }) => status !== undefined)).toEqual([
    { functionName: 'health', path: '/health/ready', status: 200 },
    { functionName: 'portal', path: '/', status: 200 },
  ])
  expect(smokeRequests).toContain(readiness)
})

test('modules are asked where none is, and other functions what they let nobody see', () => {
  expect(pathOf('gateway/modules')).toEqual({ functionName: 'gateway/modules', path: '/api/-' })
  expect(pathOf('clusters')).toEqual({ functionName: 'clusters', path: '/api/v1/clusters' })
  expect(pathOf('auth')).toEqual({ functionName: 'auth', path: '/api/v1/auth/me' })
  expect(pathOf('updates')).toEqual({ functionName: 'updates', path: '/api/v1/platform/updates/check' })
  // Anybody may see what these tell; and all that this one does begins something.
  expect(pathOf('setup')).toEqual({ functionName: 'setup', path: '/api/v1/setup/status' })
  expect(pathOf('relay')).toEqual({ functionName: 'relay', path: '/api/v1/relay/enroll' })
})

test('no function is asked what begins something where there is something else to ask', () => {
  const endpoints = routes.map(({ function: name, endpoint }) => ({ name, ...endpoint }))
  for (const { functionName, path } of smokeRequests.filter(({ status }) => status === undefined)) {
    const own = endpoints.filter(({ name, method }) => name === functionName && method === 'GET')
    const closed = own.filter(({ access }) => access !== 'public')
    const asked = own.find((endpoint) => endpoint.path.replaceAll(/\{\w+\}/g, '-') === path)
    if (closed.length > 0) expect([functionName, asked?.access]).not.toEqual([functionName, 'public'])
    if (own.length > 0) expect([functionName, asked?.method]).toEqual([functionName, 'GET'])
  }
})
