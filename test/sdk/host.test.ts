import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import type { ModuleDefinition } from '@platform/modules'
import { describe, expect, test, vi } from 'vitest'
import { captureLog } from '../support/log.ts'
import { instanceOf, startedInstance } from '../support/sdk-instance.ts'

const hookNames = ['configureServices', 'configure', 'routes', 'start', 'stop', 'dispose'] as const

function recordHooks(): { calls: string[]; hooks: Partial<ModuleDefinition> } {
  const calls: string[] = []
  const hooks = Object.fromEntries(hookNames.map((name) => [name, vi.fn(() => void calls.push(name))]))
  return { calls, hooks }
}

const waitForever = () => new Promise<never>(() => {})
const fail = () => {
  throw new Error('It throws.')
}
const failure = { status: 500, body: { error: 'hook_failed', message: 'It throws.' } }

describe('the lifecycle', () => {
  test('calls each hook once, in order, with signal and context', async () => {
    const { calls, hooks } = recordHooks()
    const { host } = instanceOf({
      ...hooks,
      configure: ({ disposables }) => {
        calls.push('configure')
        disposables.defer(() => void calls.push('first'))
        disposables.defer(() => void calls.push('last'))
      },
    })
    const states = [host.state]
    for (const step of [() => host.configure(), () => host.start(), () => host.stop(), () => host.dispose()]) {
      await step()
      states.push(host.state)
    }
    expect(calls).toEqual([...hookNames, 'last', 'first'])
    expect(states).toEqual(['Loading', 'Configured', 'Started', 'Stopped', 'Disposed'])
    const context = expect.objectContaining({ module: { id: 'sample', version: '1.2.3' } })
    for (const hook of [hooks.start, hooks.stop]) expect(hook).toHaveBeenCalledWith(expect.any(AbortSignal), context)
    expect(hooks.dispose).toHaveBeenCalledWith(context)
  })

  test('runs each hook once for repeated and concurrent calls', async () => {
    const { calls, hooks } = recordHooks()
    const { host } = instanceOf(hooks)
    await Promise.all([host.configure(), host.configure()])
    await Promise.all([host.start(), host.start()])
    await Promise.all([host.configure(), host.start()])
    await Promise.all([host.stop(), host.stop(), host.stop()])
    await Promise.all([host.dispose(), host.dispose()])
    expect(calls).toEqual(hookNames)
  })

  test('rejects start before configure, and all work after stop', async () => {
    const { control } = instanceOf({})
    expect(await control('POST', '/start')).toMatchObject({ status: 409, body: { error: 'wrong_state' } })
    await control('POST', '/configure')
    await control('POST', '/stop')
    for (const path of ['/configure', '/start', '/jobs/x']) {
      expect((await control('POST', path)).status, path).toBe(409)
    }
    expect((await control('GET', '/describe')).body.state).toBe('Stopped')
  })

  test('calls stop after a failed start, but not without a start or after dispose', async () => {
    const stop = vi.fn<() => void>()
    const failedHost = instanceOf({ start: fail, stop })
    await failedHost.host.configure()
    await failedHost.host.start().catch(() => {})
    await failedHost.host.stop()
    expect(stop).toHaveBeenCalledOnce()
    const configuredHost = instanceOf({ stop })
    await configuredHost.host.configure()
    await configuredHost.host.stop()
    const disposed = await startedInstance({ stop })
    await disposed.host.dispose()
    await disposed.host.stop()
    expect(stop).toHaveBeenCalledOnce()
    expect(disposed.host.state).toBe('Disposed')
  })

  test('completes active requests before dispose', async () => {
    const calls: string[] = []
    const gate = Promise.withResolvers<void>()
    const { host, send } = await startedInstance({
      dispose: () => void calls.push('dispose'),
      routes: (app) =>
        void app.get('/api/sample', async (c) => {
          await gate.promise
          calls.push('response')
          return c.text('completed')
        }),
    })
    const response = send('GET', '/api/sample')
    await host.stop()
    const disposed = host.dispose()
    gate.resolve()
    expect(await (await response).text()).toBe('completed')
    await disposed
    expect(calls).toEqual(['response', 'dispose'])
  })

  test('disposes of a module after five seconds despite a pending request', async () => {
    const dispose = vi.fn<() => void>()
    const { host, send } = await startedInstance({ dispose, routes: (app) => void app.get('/api/sample', waitForever) })
    void send('GET', '/api/sample')
    vi.useFakeTimers()
    const disposed = host.stop().then(() => host.dispose())
    await vi.advanceTimersByTimeAsync(5001)
    vi.useRealTimers()
    await disposed
    expect(dispose).toHaveBeenCalledOnce()
  })

  test('allows dispose in every state', async () => {
    const failedHost = instanceOf({ configure: fail })
    await failedHost.host.configure().catch(() => {})
    for (const { control } of [instanceOf({}), failedHost, await startedInstance({})]) {
      expect(await control('POST', '/dispose')).toMatchObject({ status: 200, body: { state: 'Disposed' } })
    }
  })
})

describe('a module that starts itself', () => {
  test('is configured and started by its first request, not by a description', async () => {
    const { calls, hooks } = recordHooks()
    const routes = (app: Parameters<NonNullable<ModuleDefinition['routes']>>[0]) =>
      void app.get('/api/sample', (c) => c.text(calls.join()))
    const { send, control } = instanceOf({ ...hooks, routes }, { startsItself: true })
    expect((await control('GET', '/describe')).body.state).toBe('Loading')
    expect(calls).toEqual(['configureServices'])
    const responses = await Promise.all(['a', 'b'].map(() => send('GET', '/api/sample')))
    for (const response of responses) expect(await response.text()).toBe('configureServices,configure,start')
  })

  test('does not start again after a stop', async () => {
    const { send, host } = instanceOf({}, { startsItself: true })
    await host.configure()
    await host.start()
    await host.stop()
    expect((await send('GET', '/api/sample')).status).toBe(503)
  })
})

test('describes a module with its subscriptions', async () => {
  const slot = { slotId: 'nav.primary', id: 's', label: 'S', icon: 'hand', route: '/modules/sample', order: 1 } as const
  const { host, control } = instanceOf({
    slots: [slot],
    healthChecks: { deep: { tags: ['degradable'], check: () => ({ status: 'Healthy' }) } },
    jobs: { beat: { description: 'Beats.', intervalSeconds: 60, run: () => {} } },
    configure: ({ eventBus }) => {
      for (const type of ['platform.job.failed', 'platform.job.failed', 'module.other.done'] as const)
        eventBus.subscribe(type, () => {})
    },
  })
  await host.configure()
  expect((await control('GET', '/describe')).body).toEqual({
    sdkVersion: expect.stringMatching(/^0\.\d+\.\d+$/),
    id: 'sample',
    version: '1.2.3',
    state: 'Configured',
    slots: [slot],
    healthChecks: [{ name: 'deep', tags: ['degradable'] }],
    jobs: [{ id: 'beat', description: 'Beats.', intervalSeconds: 60 }],
    subscriptions: ['module.other.done', 'platform.job.failed'],
  })
})

const reject = () => Promise.reject(new Error('It throws.'))

test.for<[string, ModuleDefinition[keyof ModuleDefinition], string, string]>([
  ['configureServices', fail, '/configure', 'PLAT-MOD-5004'],
  ['configure', fail, '/configure', 'PLAT-MOD-5004'],
  ['routes', fail, '/configure', 'PLAT-MOD-5004'],
  ['routes', reject, '/configure', 'PLAT-MOD-5004'],
  ['start', fail, '/start', 'PLAT-MOD-5005'],
])('an error in %s fails the module, and is returned and logged once', async ([hook, failing, path, code]) => {
  const responses: unknown[] = []
  let state: unknown
  const lines = await captureLog(async () => {
    const { control } = instanceOf({ [hook]: failing })
    if (hook === 'start') await control('POST', '/configure')
    responses.push(await control('POST', path), await control('POST', path))
    state = (await control('GET', '/describe')).body.state
  })
  expect(responses).toEqual([failure, failure])
  expect(state).toBe('Failed')
  expect(lines.filter((line) => line['code'] === code)).toHaveLength(1)
})

test.for(['configure', 'start', 'stop'] as const)('%s ends at its time limit', async (hook) => {
  const { host, control, send } = instanceOf({ [hook]: waitForever })
  if (hook !== 'configure') await host.configure()
  if (hook === 'stop') await host.start()
  const response = await send('POST', `/_platform/v1/${hook}`, { headers: { 'x-platform-grace-ms': '30' } })
  const body = { error: 'hook_timeout', message: `${hook} took longer than 30 ms.` }
  expect([response.status, await response.json()]).toEqual([504, body])
  expect((await control('GET', '/describe')).body.state).toBe(hook === 'stop' ? 'Stopped' : 'Failed')
})

describe('the signal of a hook', () => {
  test('aborts at its time limit, after which configure adds no routes', async () => {
    let signal: AbortSignal | undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    const routes = vi.fn<() => void>()
    const configure: ModuleDefinition['configure'] = (_context, hookSignal) => {
      signal = hookSignal
      return promise
    }
    const { host } = instanceOf({ configure, routes })
    await expect(host.configure(20)).rejects.toMatchObject({ error: 'hook_timeout' })
    expect(signal?.reason).toMatchObject({ name: 'TimeLimitError' })
    await host.dispose()
    resolve()
    await setImmediate()
    expect(routes).not.toHaveBeenCalled()
  })

  test.for([40, 2000])(
    'aborts before the time limit of %i ms for stop, so that the hook can finish',
    async (limitMs) => {
      const stop = vi.fn(async (signal: AbortSignal) => void (await once(signal, 'abort')))
      const { host } = await startedInstance({ stop })
      vi.useFakeTimers()
      const stopping = host.stop(limitMs)
      await vi.advanceTimersByTimeAsync(limitMs - 1)
      vi.useRealTimers()
      expect([host.state, stop.mock.calls[0]?.[0].reason]).toMatchObject(['Stopped', { name: 'TimeLimitError' }])
      await stopping
    },
  )

  test('aborts a running start when the module stops, without logging an error', async () => {
    let hookSignal: AbortSignal | undefined
    const { host } = instanceOf({
      start: (signal) => {
        hookSignal = signal
        return waitForever()
      },
    })
    await host.configure()
    const lines = await captureLog(async () => {
      const starting = host.start()
      await Promise.all([host.stop(), expect(starting).rejects.toThrow('stopping')])
    })
    expect([hookSignal?.aborted, host.state]).toEqual([true, 'Stopped'])
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('aborts only at the stop of the module once the hook has ended', async () => {
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
})

describe('dispose', () => {
  test('wins over a concurrent stop', async () => {
    const { host } = await startedInstance({ stop: waitForever })
    const stopping = host.stop(30)
    await host.dispose()
    await expect(stopping).rejects.toMatchObject({ error: 'hook_timeout' })
    expect(host.state).toBe('Disposed')
  })

  test('releases all resources despite errors', async () => {
    const calls: string[] = []
    const { control } = await startedInstance({
      configure: ({ disposables }) => {
        disposables.defer(() => void calls.push('first'))
        disposables.defer(fail)
        disposables.defer(() => void calls.push('last'))
      },
      stop: fail,
      dispose: fail,
    })
    expect((await control('POST', '/stop')).status).toBe(500)
    expect(await control('POST', '/dispose')).toEqual(failure)
    expect(calls).toEqual(['last', 'first'])
    expect((await control('GET', '/describe')).body.state).toBe('Disposed')
  })
})
