import { expect, test, vi } from 'vitest'
import { log } from '@platform/core/log'
import { consume } from '@platform/http/consume'
import { scheduled } from '@platform/http/schedule'
import * as z from 'zod'
import { captureLog } from '../support/log.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'info' }))

const event = (...bodies: string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: `message-${index}`, body })),
})

test('messages that fail are answered one by one, the others are done', async () => {
  const done: string[] = []
  const handler = consume(z.object({ id: z.string() }), async ({ id }) => {
    if (id === 'bad') throw new Error('cannot')
    done.push(id)
  })
  let result: unknown
  await captureLog(async () => {
    result = await handler(event('{"id": "a"}', '{"id": "bad"}', '{"id": "b"}', 'not json', '{"id": 7}', '', 'null'))
  })
  expect(done.toSorted()).toEqual(['a', 'b'])
  expect(result).toEqual({
    batchItemFailures: [1, 3, 4, 5, 6].map((index) => ({ itemIdentifier: `message-${index}` })),
  })
})

test('a batch that succeeds fails nothing', async () => {
  const handler = consume(z.object({}), async () => undefined)
  expect(await handler(event('{}', '{}'))).toEqual({ batchItemFailures: [] })
  expect(await handler({ Records: [] })).toEqual({ batchItemFailures: [] })
})

test('each message has a trace of its own, and what it logs carries it', async () => {
  const handler = consume(z.object({}), async () => log('info', 'working'))
  const lines = await captureLog(() => handler(event('{}', '{}')))
  expect(lines.map(({ messageId }) => messageId)).toEqual(['message-0', 'message-1'])
  expect(new Set(lines.map(({ traceId }) => traceId)).size).toBe(2)
})

test('the log tells why a message failed, and nothing that it held', async () => {
  const handler = consume(z.object({ id: z.string() }), async () => undefined)
  const lines = await captureLog(() => handler(event('{"id": 7, "secret": "hidden"}')))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ level: 'error', messageId: 'message-0', message: 'message failed' })
  expect(JSON.stringify(lines)).not.toContain('hidden')
})

test('a scheduled task that fails is logged and fails its invocation, so that it counts and is tried again', async () => {
  const handler = scheduled('sweep', () => Promise.reject(new Error('no store')))
  const lines = await captureLog(() => expect(handler()).rejects.toThrow('no store'))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ level: 'error', task: 'sweep', traceId: expect.stringMatching(/^[0-9a-f]{32}$/) })
})

test('a scheduled task that succeeds leaves one line', async () => {
  const lines = await captureLog(() => scheduled('sweep', async () => undefined)())
  expect(lines).toMatchObject([
    { level: 'info', message: 'scheduled run completed', task: 'sweep', durationMs: expect.any(Number) },
  ])
})
