import { createRoute, json, jsonBody } from '@platform/contract/endpoint'
import { platformError } from '@platform/core/error'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import * as z from 'zod'
import { captureLog } from '../support/log.ts'
import { type TestRequest, type TestResponse, send } from '../support/request.ts'

const common = { access: 'public', tags: ['Test'], summary: 'Test' } as const
const echo = { 200: { description: 'The input', content: json(z.record(z.string(), z.unknown())) } } as const
const params = z.object({ id: z.string().min(1).max(20) })
const page = z.string().regex(/^[1-9]$/)

const listThings = createRoute({
  ...common,
  method: 'get',
  path: '/things',
  request: { query: z.object({ page: page.optional() }) },
  responses: echo,
})
const getThing = createRoute({ ...common, method: 'get', path: '/things/{id}', request: { params }, responses: echo })
const getCatalog = createRoute({ ...common, method: 'get', path: '/things/catalog', responses: echo })
const addThing = createRoute({
  ...common,
  method: 'post',
  path: '/things',
  maxBodyBytes: 4 * 1024 * 1024,
  request: {
    body: jsonBody(
      z.object({
        name: z.string().min(3).max(64),
        kinds: z.array(z.enum(['a', 'b'])).optional(),
        payload: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
  },
  responses: echo,
})
const addUnchecked = createRoute({
  ...common,
  method: 'post',
  path: '/unchecked',
  request: { body: jsonBody(z.object({ name: z.string() })) },
  validatesBody: true,
  responses: echo,
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
    503: { description: 'Unavailable', content: json(z.object({ status: z.string() })) },
  },
})
const fail = createRoute({ ...common, method: 'get', path: '/fail/{id}', request: { params }, responses: echo })

const failures: Record<string, () => Error> = {
  conflict: () => platformError('cluster_name_taken'),
  token: () => platformError('initial_admin_token_invalid', { howToRetrieve: 'look' }),
  complete: () => platformError('setup_already_complete', { setupComplete: true }),
  site: () => platformError('unknown_site'),
  limited: () => platformError('rate_limited', { retryAfterSeconds: 7 }),
  unavailable: () => platformError('database_unavailable', {}, { cause: new Error('connection refused') }),
  credentials: () => platformError('invalid_credentials'),
  unexpected: () => new TypeError('secret detail', { cause: new Error('deeper detail') }),
}

const strictHeaders = {
  valid: { list: [{ name: 'a' }] },
  invalid: { list: [{ name: 1 }] },
  extra: { list: [{ name: 'a', passwordHash: 'x' }] },
}

export const handler = serve(
  route(getThing, ({ params }) => result(200, { thing: params.id })),
  route(getCatalog, () => result(200, { catalog: true })),
  route(listThings, ({ query, origin }) => result(200, { query, origin })),
  route(addThing, ({ body }) => result(200, { body })),
  route(addUnchecked, ({ body }) => result(200, { isPresent: body !== undefined, body })),
  route(touch, () => result(204)),
  route(getPage, () => result(200, '<p>Page</p>', { etag: '"v1"', 'cache-control': 'public, max-age=60' })),
  route(getStrict, ({ params }) =>
    params.id === 'unavailable'
      ? result(503, { status: 'unavailable' })
      : result(200, strictHeaders[params.id as keyof typeof strictHeaders] as typeof strictHeaders.valid),
  ),
  route(fail, ({ params }) => {
    throw failures[params.id]?.() ?? new Error('Unknown failure')
  }),
)

/** Sends a request without printing its log. */
export async function request(sent: TestRequest | string, to = handler): Promise<TestResponse> {
  let response: TestResponse | undefined
  await captureLog(async () => (response = await send(to, typeof sent === 'string' ? { target: sent } : sent)))
  if (response === undefined) throw new Error('The handler did not respond.')
  return response
}
