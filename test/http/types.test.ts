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
    202: { description: 'Taken', content: json(z.object({ jobId: z.string() })) },
    204: { description: 'Nothing' },
  },
} as const

const common = { method: 'post', path: '/things/{id}', tags: ['Things'], summary: 'Things' } as const
const forUser = createRoute({ ...common, ...shapes, access: 'clusters:read' })
const forRelay = createRoute({ ...common, responses: shapes.responses, access: 'relay' })
const forAll = createRoute({
  ...common,
  access: 'public',
  request: { body: shapes.request.body },
  validatesBody: true,
  responses: { 200: { description: 'A page', content: { 'text/html': {} } } },
})

const takes = <Type>(value: Type): Type => value

test('a handler gets what its endpoint says: caller, parameters, query and body', () => {
  const routes = [
    route(forUser, ({ caller, params, query, body }) => {
      takes<Caller>(caller)
      takes<string>(params.id)
      takes<number>(query.page)
      takes<string>(body.name)
      // @ts-expect-error the query is what its schema makes of it
      takes<string>(query.page)
      // @ts-expect-error the body has no such member
      takes<unknown>(body.other)
      return result(204)
    }),
    route(forRelay, ({ caller, params, query, body }) => {
      takes<RelayCaller>(caller)
      takes<undefined>(params)
      takes<undefined>(query)
      takes<undefined>(body)
      // @ts-expect-error a relay is not a user
      takes<Caller>(caller)
      return result(204)
    }),
    route(forAll, ({ caller, body }) => {
      takes<undefined>(caller)
      takes<unknown>(body)
      // @ts-expect-error nothing is known of a body that the verb checks
      takes<{ name: string }>(body)
      return result(200, '<p>')
    }),
  ]
  expect(routes).toHaveLength(3)
})

test('an unknown member of an endpoint does not compile', () => {
  const responses = { 204: { description: 'Nothing' } }
  const endpoints = [
    createRoute({ ...common, access: 'user', responses, errors: ['conflict'] }),
    // @ts-expect-error capabilities is the name
    createRoute({ ...common, access: 'user', responses, uses: ['table:read'] }),
    // @ts-expect-error an error code that is not listed
    createRoute({ ...common, access: 'user', responses, errors: ['unheard_of'] }),
    // @ts-expect-error a part of a request that does not exist
    createRoute({ ...common, access: 'user', responses, request: { parameters: z.object({}) } }),
    // @ts-expect-error a body belongs into content
    createRoute({ ...common, access: 'user', responses: { 200: { description: 'Done', schema: z.object({}) } } }),
  ]
  expect(endpoints).toHaveLength(5)
})

test('an answer that the endpoint does not promise does not compile', () => {
  const routes = [
    route(forUser, () => result(200, { kind: 'a' })),
    route(forUser, async () => result(202, { jobId: 'job' }, { location: '/jobs/job' })),
    route(forUser, ({ body }) => result(body.name ? 200 : 200, { kind: 'b' })),
    // @ts-expect-error a status that is not promised
    route(forUser, () => result(201, { kind: 'a' })),
    // @ts-expect-error the body of another status
    route(forUser, () => result(200, { jobId: 'job' })),
    // @ts-expect-error a value outside of the enumeration
    route(forUser, () => result(200, { kind: 'c' })),
    // @ts-expect-error a missing body
    route(forUser, () => result(200)),
    // @ts-expect-error a body where there is none
    route(forUser, () => result(204, { kind: 'a' })),
    // @ts-expect-error a page is text
    route(forAll, () => result(200, { kind: 'a' })),
    // @ts-expect-error nothing at all
    route(forUser, () => undefined),
  ]
  expect(routes).toHaveLength(10)
})
