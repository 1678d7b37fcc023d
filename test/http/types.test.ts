import { expect, test } from 'vitest'
import { createRoute, json, jsonBody } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import * as z from 'zod'

const shapes = {
  request: {
    params: z.object({ id: z.string() }),
    query: z.object({ page: z.string().transform(Number) }),
    body: jsonBody(z.object({ name: z.string() })),
  },
  responses: {
    200: { description: 'Done', content: json(z.object({ kind: z.enum(['a', 'b']) })) },
    202: { description: 'Accepted', content: json(z.object({ jobId: z.string() })) },
    204: { description: 'No content' },
  },
} as const

const common = { method: 'post', path: '/things/{id}', tags: ['Things'], summary: 'Things' } as const
const userEndpoint = createRoute({ ...common, ...shapes, access: 'clusters:read' })
const relayEndpoint = createRoute({ ...common, responses: shapes.responses, access: 'relay' })
const publicEndpoint = createRoute({
  ...common,
  access: 'public',
  request: { body: shapes.request.body },
  validatesBody: true,
  responses: { 200: { description: 'A page', content: { 'text/html': {} } } },
})

const expectType = <Type>(value: Type): Type => value

test('a handler receives the caller, parameters, query and body of its endpoint', () => {
  const routes = [
    route(userEndpoint, ({ caller, params, query, body }) => {
      expectType<Caller>(caller)
      expectType<string>(params.id)
      expectType<number>(query.page)
      expectType<string>(body.name)
      // @ts-expect-error the schema transforms the query
      expectType<string>(query.page)
      // @ts-expect-error the body has no such member
      expectType<unknown>(body.other)
      return result(204)
    }),
    route(relayEndpoint, ({ caller, params, query, body }) => {
      expectType<RelayCaller>(caller)
      expectType<undefined>(params)
      expectType<undefined>(query)
      expectType<undefined>(body)
      // @ts-expect-error a relay is not a user
      expectType<Caller>(caller)
      return result(204)
    }),
    route(publicEndpoint, ({ caller, body }) => {
      expectType<undefined>(caller)
      expectType<unknown>(body)
      // @ts-expect-error an unvalidated body is unknown
      expectType<{ name: string }>(body)
      return result(200, '<p>')
    }),
  ]
  expect(routes).toHaveLength(3)
})

test('an unknown member of an endpoint does not compile', () => {
  const responses = { 204: { description: 'No content' } }
  const endpoints = [
    createRoute({ ...common, access: 'user', responses, errors: ['conflict'] }),
    // @ts-expect-error an unknown name
    createRoute({ ...common, access: 'user', responses, uses: ['table:read'] }),
    // @ts-expect-error an unknown error code
    createRoute({ ...common, access: 'user', responses, errors: ['unheard_of'] }),
    // @ts-expect-error an unknown part of a request
    createRoute({ ...common, access: 'user', responses, request: { parameters: z.object({}) } }),
    // @ts-expect-error a schema outside content
    createRoute({ ...common, access: 'user', responses: { 200: { description: 'Done', schema: z.object({}) } } }),
  ]
  expect(endpoints).toHaveLength(5)
})

test('a response that the endpoint does not define does not compile', () => {
  const routes = [
    route(userEndpoint, () => result(200, { kind: 'a' })),
    route(userEndpoint, async () => result(202, { jobId: 'job' }, { location: '/jobs/job' })),
    route(userEndpoint, ({ body }) => result(body.name ? 200 : 200, { kind: 'b' })),
    // @ts-expect-error an undefined status
    route(userEndpoint, () => result(201, { kind: 'a' })),
    // @ts-expect-error the body of another status
    route(userEndpoint, () => result(200, { jobId: 'job' })),
    // @ts-expect-error a value outside the enumeration
    route(userEndpoint, () => result(200, { kind: 'c' })),
    // @ts-expect-error a missing body
    route(userEndpoint, () => result(200)),
    // @ts-expect-error a body for a status without one
    route(userEndpoint, () => result(204, { kind: 'a' })),
    // @ts-expect-error a page is text
    route(publicEndpoint, () => result(200, { kind: 'a' })),
    // @ts-expect-error no result
    route(userEndpoint, () => undefined),
  ]
  expect(routes).toHaveLength(10)
})
