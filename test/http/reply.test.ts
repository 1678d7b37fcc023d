import { expect, test } from 'vitest'
import { createRoute, json } from '@platform/contract/endpoint'
import { result } from '@platform/http/result'
import { httpResponse, toResult } from '@platform/http/response'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import * as z from 'zod'
import { send } from '../support/request.ts'
import { captureLog } from '../support/log.ts'

test.each([204, 205, 304])('an answer with %i has no body', (status) => {
  expect(() => httpResponse(status, 'text', {})).toThrow(`${status}`)
  expect(() => httpResponse(status, Buffer.of(1), {})).toThrow(`${status}`)
  expect(httpResponse(status, null, {}).body).toBeNull()
})

test('a text that is cut inside of a character is sent all the same', () => {
  expect(toResult(httpResponse(200, 'a\ud83cb €', {}))).toMatchObject({ body: 'a\ufffdb €', isBase64Encoded: false })
})

test('a handler that forgets its body is answered as a defect, not by an invocation that fails', async () => {
  const forgetful = createRoute({
    method: 'get',
    path: '/forgotten',
    access: 'public',
    tags: ['Test'],
    summary: 'Test',
    responses: { 200: { description: 'Something', content: json(z.unknown()) } },
  })
  const handler = serve(route(forgetful, () => result(200, undefined)))
  await captureLog(async () => {
    expect(await send(handler, { target: '/forgotten' })).toMatchObject({
      status: 500,
      json: { error: 'internal_error' },
    })
  })
})
