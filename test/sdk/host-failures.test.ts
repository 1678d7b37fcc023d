import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { instanceOf } from '../support/sdk-instance.ts'
import { captureLog } from '../support/log.ts'

const never = () => new Promise<never>(() => {})
const fail = () => {
  throw new Error('It throws.')
}

test.for([
  ['configureServices', '/configure', 'PLAT-MOD-5004'],
  ['configure', '/configure', 'PLAT-MOD-5004'],
  ['routes', '/configure', 'PLAT-MOD-5004'],
  ['start', '/start', 'PLAT-MOD-5005'],
] as const)('%s: the module is Failed, says why, and logs its code', async ([hook, path, code]) => {
  let answer: unknown
  let again: unknown
  let state: unknown
  const lines = await captureLog(async () => {
    const { control } = instanceOf({ [hook]: fail })
    if (hook === 'start') await control('POST', '/configure')
    answer = await control('POST', path)
    again = await control('POST', path)
    state = (await control('GET', '/describe')).body.state
  })
  expect(answer).toEqual({ status: 500, body: { error: 'hook_failed', message: 'It throws.' } })
  expect(again).toEqual(answer)
  expect(state).toBe('Failed')
  expect(lines.filter((line) => line['code'] === code)).toHaveLength(1)
})

test.for(['configure', 'start', 'stop'] as const)('%s that never ends is given up in time', async (hook) => {
  const { host, control, ask } = instanceOf({ [hook]: never })
  if (hook !== 'configure') await host.configure()
  if (hook === 'stop') await host.start()
  const response = await ask('POST', `/_platform/v1/${hook}`, { headers: { 'x-platform-grace-ms': '30' } })
  expect([response.status, await response.json()]).toEqual([
    504,
    { error: 'hook_timeout', message: `${hook} took longer than 30 ms.` },
  ])
  expect((await control('GET', '/describe')).body.state).toBe(hook === 'stop' ? 'Stopped' : 'Failed')
})

test('a hook learns of its time limit by its signal', async () => {
  let reason: unknown
  const { host } = instanceOf({
    configure: (_context, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason
          reject(signal.reason)
        })
      }),
  })
  await expect(host.configure(20)).rejects.toMatchObject({ error: 'hook_timeout' })
  expect(reason).toMatchObject({ name: 'TimeLimitError' })
})

test('stop cuts short what is under way, waits for no hook that hangs, and does not count that as a failure', async () => {
  let isAborted = false
  const { host } = instanceOf({
    start: (signal) => {
      signal.addEventListener('abort', () => (isAborted = true))
      return never()
    },
  })
  await host.configure()
  const lines = await captureLog(async () => {
    const starting = host.start()
    await Promise.all([host.stop(), expect(starting).rejects.toThrow('stopping')])
  })
  expect(isAborted).toBe(true)
  expect(host.state).toBe('Stopped')
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
})

test('a module that is disposed of while it stops stays Disposed', async () => {
  const { host } = instanceOf({ stop: never })
  await host.configure()
  await host.start()
  const stopping = host.stop(30)
  await host.dispose()
  await expect(stopping).rejects.toMatchObject({ error: 'hook_timeout' })
  expect(host.state).toBe('Disposed')
})

test('the signal of a hook that ended in time does not abort when its time is up', async () => {
  let given: AbortSignal | undefined
  const { host } = instanceOf({ start: (signal) => void (given = signal) })
  await host.configure()
  vi.useFakeTimers()
  await host.start()
  vi.advanceTimersByTime(31_000)
  vi.useRealTimers()
  expect(given?.aborted).toBe(false)
  await host.stop()
  expect(given?.aborted).toBe(true)
})

test('stop is called for a module whose start has failed: it may have begun half of its work', async () => {
  const stop = vi.fn<() => void>()
  const { host } = instanceOf({ start: fail, stop })
  await host.configure()
  await host.start().catch(() => {})
  await host.stop()
  expect(stop).toHaveBeenCalledOnce()
})

test('whatever fails, a module is disposed of whole', async () => {
  const calls: string[] = []
  const { control } = instanceOf({
    configure: ({ disposables }) => {
      disposables.defer(() => void calls.push('first in'))
      disposables.defer(fail)
      disposables.defer(() => void calls.push('last in'))
    },
    stop: fail,
    dispose: fail,
  })
  await control('POST', '/configure')
  await control('POST', '/start')
  expect((await control('POST', '/stop')).status).toBe(500)
  expect(await control('POST', '/dispose')).toEqual({
    status: 500,
    body: { error: 'hook_failed', message: 'It throws.' },
  })
  expect(calls).toEqual(['last in', 'first in'])
  expect((await control('GET', '/describe')).body.state).toBe('Disposed')
})

test('dispose works in every state', async () => {
  const loading = instanceOf({})
  const failed = instanceOf({ configure: fail })
  await failed.host.configure().catch(() => {})
  const started = instanceOf({})
  await started.host.configure()
  await started.host.start()
  for (const { control } of [loading, failed, started]) {
    expect(await control('POST', '/dispose')).toMatchObject({ status: 200, body: { state: 'Disposed' } })
  }
})

test('a configure that ends after it was given up adds no routes', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const routes = vi.fn<() => void>()
  const { host } = instanceOf({ configure: () => promise, routes })
  await expect(host.configure(20)).rejects.toMatchObject({ error: 'hook_timeout' })
  await host.dispose()
  resolve()
  await setImmediate()
  expect(routes).not.toHaveBeenCalled()
})

test('routes that fail later fail configure, and end nothing else', async () => {
  const { control } = instanceOf({ routes: () => Promise.reject(new Error('It throws.')) as never })
  expect(await control('POST', '/configure')).toEqual({
    status: 500,
    body: { error: 'hook_failed', message: 'It throws.' },
  })
})

test('what was disposed of is not stopped any more', async () => {
  const stop = vi.fn<() => void>()
  const { host } = instanceOf({ stop })
  await host.configure()
  await host.start()
  await host.dispose()
  await host.stop()
  expect([stop.mock.calls, host.state]).toEqual([[], 'Disposed'])
})
