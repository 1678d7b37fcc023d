import { routes } from '@platform/contract/index'
import { createRouter } from '@platform/local/gateway/routes'
import { expect, test } from 'vitest'
import { sampleRoutes } from './support.ts'

const platformRoutes = routes.map(({ function: functionName, method, endpoint: { path } }) => ({
  functionName,
  method,
  path,
}))

test.for(platformRoutes)('$method $path goes to its function', ({ functionName, method, path }) => {
  const route = createRouter(platformRoutes, 'portal')
  const asked = path.replaceAll(/{\w+}/g, 'some-id')
  expect(route(method, asked)).toMatchObject({ functionName, routeKey: `${method} ${path}` })
})

test.for([
  ['a literal segment before a parameter', 'GET', '/things/catalog', 'catalog', 'GET /things/catalog', undefined],
  ['a parameter elsewhere', 'GET', '/things/other', 'things', 'GET /things/{id}', { id: 'other' }],
  [
    'a parameter where the literal leads nowhere',
    'GET',
    '/things/catalog/parts/7',
    'parts',
    'GET /things/{thingId}/parts/{partId}',
    { thingId: 'catalog', partId: '7' },
  ],
  ['the default for an unknown path', 'GET', '/other', 'fallback', '$default', undefined],
  ['the default for another method', 'DELETE', '/things', 'fallback', '$default', undefined],
  ['the default for HEAD', 'HEAD', '/things', 'fallback', '$default', undefined],
  ['the default for an empty parameter', 'GET', '/things/', 'fallback', '$default', undefined],
  ['the default for a longer path', 'GET', '/things/a/parts', 'fallback', '$default', undefined],
  [
    'a greedy one where no other fits',
    'GET',
    '/things/a/more/b/c',
    'more',
    'ANY /things/{id}/more/{proxy+}',
    { id: 'a', proxy: 'b/c' },
  ],
  [
    'the greedy one with the longer beginning',
    'PATCH',
    '/any/deep/b',
    'deep',
    'ANY /any/deep/{proxy+}',
    { proxy: 'b' },
  ],
  [
    'a shorter greedy one where the longer has nothing left',
    'GET',
    '/any/deep',
    'any',
    'ANY /any/{proxy+}',
    { proxy: 'deep' },
  ],
  ['the greedy one of its method', 'POST', '/any/x', 'posted', 'POST /any/{proxy+}', { proxy: 'x' }],
  ['a full match of another method before a greedy one', 'GET', '/any/full', 'full', 'ANY /any/full', undefined],
  ['a full match before the greedy one of its method', 'POST', '/any/full', 'full', 'ANY /any/full', undefined],
  ['what the caller sent, slashes and all', 'HEAD', '/any/b//c/', 'any', 'ANY /any/{proxy+}', { proxy: 'b//c/' }],
  ['the default where a greedy one has nothing to take', 'GET', '/any/', 'fallback', '$default', undefined],
  ['the default beside a greedy one', 'GET', '/any', 'fallback', '$default', undefined],
  ['the default for the root', 'GET', '/', 'fallback', '$default', undefined],
  ['the default for a member of all objects', 'GET', '/constructor', 'fallback', '$default', undefined],
] as const)('a request takes %s', ([, method, path, functionName, routeKey, pathParameters]) => {
  const match = createRouter(sampleRoutes, 'fallback')(method, path)
  expect(match).toEqual({ functionName, routeKey, ...(pathParameters && { pathParameters }) })
})

test('a method that the literal path lacks falls back to the parameter', () => {
  const route = createRouter(
    [...sampleRoutes, { functionName: 'remove', method: 'DELETE', path: '/things/{id}' }],
    'none',
  )
  expect(route('DELETE', '/things/catalog')).toMatchObject({
    functionName: 'remove',
    pathParameters: { id: 'catalog' },
  })
})
