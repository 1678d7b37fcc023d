import { findRouteOwner, parseRoutes } from '@platform/core/modules/routes'
import { expect, test } from 'vitest'

/** Routes of modules, reserved in this order. */
const routesOf = (paths: Record<string, string>) =>
  parseRoutes(
    Object.fromEntries(
      Object.entries(paths).map(([id, apiBasePath]) => [`module:${id}`, JSON.stringify({ apiBasePath })]),
    ),
  )

const paths = { hello: '/api/hello', billing: '/api/billing/v2', 'hello-2': '/api/hello-2' }

test.for([
  ['/api/hello', 'hello'],
  ['/api/hello/', 'hello'],
  ['/api/hello/a/b', 'hello'],
  ['/api/hello-2/a', 'hello-2'],
  ['/api/hello-3', undefined],
  ['/api/billing/v2/x', 'billing'],
  ['/api/billing', undefined],
  ['/api/billing/v20', undefined],
  ['/modules/hello', 'hello'],
  ['/modules/hello/page', 'hello'],
  ['/modules/hello-2', 'hello-2'],
  ['/modules/hell', undefined],
  ['/modules/', undefined],
  ['/modules', undefined],
  ['/modules/toString', undefined],
  ['/hello', undefined],
  ['/', undefined],
  ['', undefined],
] as const)('routes %j to the module %s', ([path, owner]) => {
  expect(findRouteOwner(routesOf(paths), path)?.moduleId).toBe(owner)
})

const platformPaths = '/api/v1 /api/v1/jobs /api/v2/x /api/v10 /api/modules /api/modules/install /relay/x'.split(' ')
const foreignPaths = '/ /api /api/ /api/v1 /api/v2 /api/modules /modules /modules/hello /relay'.split(' ')

test.for(['', ...foreignPaths])('does not route paths of others to a reservation of %j', (path) => {
  const routes = routesOf({ aaa: path, ...paths })
  const ownerOf = (requested: string) => findRouteOwner(routes, requested)?.moduleId
  for (const [id, api] of Object.entries(paths)) expect([ownerOf(api), ownerOf(`/modules/${id}`)]).toEqual([id, id])
  for (const requested of [...platformPaths, '/health/ready', '/modules', '/'])
    expect(ownerOf(requested)).toBeUndefined()
  expect(ownerOf('/modules/aaa')).toBe('aaa')
})
