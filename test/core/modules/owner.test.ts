import { findRouteOwner, parseRoutes } from '@platform/core/modules/routes'
import { expect, test } from 'vitest'

/** Claims in this order, by module. */
const routesOf = (claims: Record<string, string>) =>
  parseRoutes(
    Object.fromEntries(
      Object.entries(claims).map(([id, apiBasePath]) => [`module:${id}`, JSON.stringify({ apiBasePath })]),
    ),
  )

const sound = { hello: '/api/hello', billing: '/api/billing/v2', 'hello-2': '/api/hello-2' }

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
] as const)('the path %j belongs to the module %s', ([path, owner]) => {
  expect(findRouteOwner(routesOf(sound), path)?.moduleId).toBe(owner)
})

const forgeries = [
  '',
  '/',
  '/api',
  '/api/',
  '/api/v1',
  '/api/v2',
  '/api/modules',
  '/modules',
  '/modules/hello',
  '/relay',
]

test.for(forgeries)(
  'a claim of %j takes nothing from the platform or from others, even where it is the first',
  (path) => {
    const routes = routesOf({ aaa: path, ...sound })
    for (const [id, api] of Object.entries(sound)) {
      expect([findRouteOwner(routes, api)?.moduleId, findRouteOwner(routes, `/modules/${id}`)?.moduleId]).toEqual([
        id,
        id,
      ])
    }
    const platform = [
      '/api/v1',
      '/api/v1/jobs',
      '/api/v2/x',
      '/api/v10',
      '/api/modules',
      '/api/modules/install',
      '/relay/x',
    ]
    for (const kept of [...platform, '/health/ready', '/modules', '/'])
      expect(findRouteOwner(routes, kept)).toBeUndefined()
    expect(findRouteOwner(routes, '/modules/aaa')?.moduleId).toBe('aaa')
  },
)
