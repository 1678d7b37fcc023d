import { expect, test, vi } from 'vitest'
import { addLogFields, currentTraceId, log, withTrace } from '@platform/core/log'
import { captureLog } from '../support/log.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'warn' }))

test('a line below the level is not written', async () => {
  const lines = await captureLog(async () => {
    log('debug', 'one')
    log('info', 'two')
    log('warn', 'three')
    log('error', 'four')
  })
  expect(lines.map(({ message }) => message)).toEqual(['three', 'four'])
})

const work = (traceId: string) =>
  withTrace({ traceId }, async () => {
    await Promise.resolve()
    addLogFields({ owner: traceId })
    await Promise.resolve()
    log('error', currentTraceId())
  })

test('what runs at the same time keeps its own trace and its own fields', async () => {
  const lines = await captureLog(() => Promise.all([work('a'), work('b')]))
  expect(lines.map(({ message, traceId, owner }) => [message, traceId, owner])).toEqual([
    ['a', 'a', 'a'],
    ['b', 'b', 'b'],
  ])
})

test('outside of a trace lines are written all the same', async () => {
  const lines = await captureLog(async () => {
    addLogFields({ lost: true })
    log('error', 'alone', { count: 1 })
  })
  expect(lines).toEqual([{ time: expect.any(String), level: 'error', message: 'alone', count: 1 }])
  expect(currentTraceId()).toBe('')
})

test('no character of a value can break the line or act on a terminal', async () => {
  const value = 'a\nb\r\u001b[2J\u007f\u009b31m\u2028\u2029"}\u0000'
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  log('error', value, { [value]: value })
  const text = String(write.mock.calls[0]?.[0])
  write.mockRestore()
  expect(text).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]+\n$/u)
  expect(JSON.parse(text)).toMatchObject({ message: value, [value]: value })
})

test('an error keeps its stack and the chain of its causes', async () => {
  const error = new Error('outer', { cause: new TypeError('inner') })
  const [line] = await captureLog(async () => log('error', 'failed', { cause: error }))
  expect(line?.['cause'].stack).toContain('Error: outer\n')
  expect(line?.['cause'].cause.stack).toContain('TypeError: inner\n')
})
