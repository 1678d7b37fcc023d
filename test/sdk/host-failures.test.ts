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
] as const)('an error in %s fails the module, is returned and logged once', async ([hook, path, code]) => {
  let response: unknown
  let again: unknown
  let state: unknown
  const lines = await captureLog(async () => {
    const { control } = instanceOf({ [hook]: fail })
    if (hook === 'start') await control('POST', '/configure')
    response = await control('POST', path)
    again = await control('POST', path)
    state = (await control('GET', '/describe')).body.state
  })
  expect(response).toEqual({ status: 500, body: { error: 'hook_failed', message: 'It throws.' } })
  expect(again).toEqual(response)
  expect(state).toBe('Failed')
  expect(lines.filter((line) => line['code'] === code)).toHaveLength(1)
})

test.for(['configure', 'start', 'stop'] as const)('%s ends at its time limit', async (hook) => {
  const { host, control, send } = instanceOf({ [hook]: never })
  if (hook !== 'configure') await host.configure()
  if (hook === 'stop') await host.start()
  const response = await send('POST', `/_platform/v1/${hook}`, { headers: { 'x-platform-grace-ms': '30' } })
  expect([response.status, await response.json()]).toEqual([
    504,
    { error: 'hook_timeout', message: `${hook} took longer than 30 ms.` },
  ])
  expect((await control('GET', '/describe')).body.state).toBe(hook === 'stop' ? 'Stopped' : 'Failed')
})

test('the signal of a hook aborts at its time limit', async () => {
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

test('stop cancels a running start without logging an error', async () => {
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

test('a module that is disposed of while it stops remains Disposed', async () => {
  const { host } = instanceOf({ stop: never })
  await host.configure()
  await host.start()
  const stopping = host.stop(30)
  await host.dispose()
  await expect(stopping).rejects.toMatchObject({ error: 'hook_timeout' })
  expect(host.state).toBe('Disposed')
})

test('the signal of a hook that has ended aborts only when the module stops', async () => {
  let hookSignal: AbortSignal | undefined
  const { host } = instanceOf({ start: (signal) => void (hookSignal = signal) })
  await host.configure()
  vi.useFakeTimers()
  await host.start()
  vi.advanceTimersByTime(31_000)
  vi.useRealTimers()
  expect(hookSignal?.aborted).toBe(false)
  await host.stop()
  expect(hookSignal?.aborted).toBe(true)
})

test('stop is called after a failed start', async () => {
  const stop = vi.fn<() => void>()
  const { host } = instanceOf({ start: fail, stop })
  await host.configure()
  await host.start().catch(() => {})
  await host.stop()
  expect(stop).toHaveBeenCalledOnce()
})

test('dispose releases all resources despite errors', async () => {
  const calls: string[] = []
  const { control } = instanceOf({
    configure: ({ disposables }) => {
      disposables.defer(() => void calls.push('first'))
      disposables.defer(fail)
      disposables.defer(() => void calls.push('last'))
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
  expect(calls).toEqual(['last', 'first'])
  expect((await control('GET', '/describe')).body.state).toBe('Disposed')
})

test('dispose is possible in every state', async () => {
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

test('a configure that ends after its time limit adds no routes', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const routes = vi.fn<() => void>()
  const { host } = instanceOf({ configure: () => promise, routes })
  await expect(host.configure(20)).rejects.toMatchObject({ error: 'hook_timeout' })
  await host.dispose()
  resolve()
  await setImmediate()
  expect(routes).not.toHaveBeenCalled()
})

test('a rejected promise of routes fails configure', async () => {
  const { control } = instanceOf({ routes: () => Promise.reject(new Error('It throws.')) as never })
  expect(await control('POST', '/configure')).toEqual({
    status: 500,
    body: { error: 'hook_failed', message: 'It throws.' },
  })
})

test('stop is not called after dispose', async () => {
  const stop = vi.fn<() => void>()
  const { host } = instanceOf({ stop })
  await host.configure()
  await host.start()
  await host.dispose()
  await host.stop()
  expect([stop.mock.calls, host.state]).toEqual([[], 'Disposed'])
})
