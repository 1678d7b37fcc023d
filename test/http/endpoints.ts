import { createRoute, json, jsonBody } from '@platform/contract/endpoint'
import { platformError } from '@platform/core/error'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import * as z from 'zod'

/** A small public API that answers what it was given, and fails where it is told to. */

const common = { access: 'public', tags: ['Test'], summary: 'Test' } as const
const echoed = { 200: { description: 'What arrived', content: json(z.record(z.string(), z.unknown())) } } as const
const params = z.object({ id: z.string().min(1).max(20) })

const listThings = createRoute({
  ...common,
  method: 'get',
  path: '/things',
  request: {
    query: z.object({
      page: z
        .string()
        .regex(/^[1-9]$/)
        .optional(),
    }),
  },
  responses: echoed,
})
const getThing = createRoute({ ...common, method: 'get', path: '/things/{id}', request: { params }, responses: echoed })
const getCatalog = createRoute({ ...common, method: 'get', path: '/things/catalog', responses: echoed })
const addThing = createRoute({
  ...common,
  method: 'post',
  path: '/things',
  request: {
    body: jsonBody(
      z.object({
        name: z.string().min(3).max(64),
        kinds: z.array(z.enum(['a', 'b'])).optional(),
        payload: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
  },
  responses: echoed,
})
const addChecked = createRoute({
  ...common,
  method: 'post',
  path: '/checked',
  request: { body: jsonBody(z.object({ name: z.string() })) },
  validatesBody: true,
  responses: echoed,
})
const touch = createRoute({ ...common, method: 'post', path: '/touch', responses: { 204: { description: 'Done' } } })
const getPage = createRoute({
  ...common,
  method: 'get',
  path: '/page',
  responses: { 200: { description: 'A page', content: { 'text/html; charset=utf-8': {} } } },
})
const getStrict = createRoute({
  ...common,
  method: 'get',
  path: '/strict/{id}',
  request: { params },
  responses: {
    200: { description: 'Strict', content: json(z.object({ list: z.array(z.object({ name: z.string() })) })) },
    503: { description: 'Away', content: json(z.object({ status: z.string() })) },
  },
})
const fail = createRoute({ ...common, method: 'get', path: '/fail/{id}', request: { params }, responses: echoed })

const failures: Record<string, () => Error> = {
  taken: () => platformError('cluster_name_taken'),
  token: () => platformError('initial_admin_token_invalid', { howToRetrieve: 'look' }),
  complete: () => platformError('setup_already_complete', { setupComplete: true }),
  site: () => platformError('unknown_site'),
  limited: () => platformError('rate_limited', { retryAfterSeconds: 7 }),
  away: () => platformError('database_unavailable', {}, { cause: new Error('connection refused') }),
  credentials: () => platformError('invalid_credentials'),
  defect: () => new TypeError('secret detail', { cause: new Error('deeper detail') }),
}

const strict = {
  right: { list: [{ name: 'a' }] },
  wrong: { list: [{ name: 1 }] },
  more: { list: [{ name: 'a', passwordHash: 'x' }] },
}

export const handler = serve(
  route(getThing, ({ params }) => result(200, { thing: params.id })),
  route(getCatalog, () => result(200, { catalog: true })),
  route(listThings, ({ query, origin }) => result(200, { query, origin })),
  route(addThing, ({ body }) => result(200, { body })),
  route(addChecked, ({ body }) => result(200, { isGiven: body !== undefined, body })),
  route(touch, () => result(204)),
  route(getPage, () => result(200, '<p>Page</p>', { etag: '"v1"', 'cache-control': 'public, max-age=60' })),
  route(getStrict, ({ params }) =>
    params.id === 'away'
      ? result(503, { status: 'unavailable' })
      : result(200, strict[params.id as keyof typeof strict] as typeof strict.right),
  ),
  route(fail, ({ params }) => {
    throw failures[params.id]?.() ?? new Error('no such failure')
  }),
)
