import { type ModuleDefinition } from '@platform/modules'
import { describe, expect, test, vi } from 'vitest'
import { instanceOf, startedInstance } from '../support/sdk-instance.ts'

const hookNames = ['configureServices', 'configure', 'routes', 'start', 'stop', 'dispose'] as const

/** Hooks that record their names. */
function recorded(): { calls: string[]; hooks: Partial<ModuleDefinition> } {
  const calls: string[] = []
  const hooks = Object.fromEntries(hookNames.map((name) => [name, () => void calls.push(name)]))
  return { calls, hooks }
}

describe('the lifecycle', () => {
  test('calls each hook once, in order', async () => {
    const { calls, hooks } = recorded()
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
  })

  test('runs each hook once for repeated and concurrent calls', async () => {
    const { calls, hooks } = recorded()
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

  test('disposes of a module without stop if it was never started', async () => {
    const { calls, hooks } = recorded()
    const { host } = instanceOf(hooks)
    await host.configure()
    await host.stop()
    await host.dispose()
    expect(calls).toEqual(['configureServices', 'configure', 'routes', 'dispose'])
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
    const calls: string[] = []
    const { host, send } = await startedInstance({
      dispose: () => void calls.push('dispose'),
      routes: (app) => void app.get('/api/sample', () => new Promise<Response>(() => {})),
    })
    void send('GET', '/api/sample')
    vi.useFakeTimers()
    const disposed = host.stop().then(() => host.dispose())
    await vi.advanceTimersByTimeAsync(5001)
    vi.useRealTimers()
    await disposed
    expect(calls).toEqual(['dispose'])
  })

  test('passes signal and context to start, stop and dispose', async () => {
    const received: unknown[] = []
    const { host } = instanceOf({
      start: (signal, context) => void received.push(signal instanceof AbortSignal, context.module),
      stop: (signal, context) => void received.push(signal instanceof AbortSignal, context.module),
      dispose: (context) => void received.push(context.module),
    })
    await host.configure()
    await host.start()
    await host.stop()
    await host.dispose()
    const module = { id: 'sample', version: '1.2.3' }
    expect(received).toEqual([true, module, true, module, module])
  })
})

describe('a module that starts itself', () => {
  test('is configured and started by its first request', async () => {
    const { calls, hooks } = recorded()
    const { send } = instanceOf(
      { ...hooks, routes: (app) => app.get('/api/sample', (c) => c.text(calls.join())) && undefined },
      { startsItself: true },
    )
    const responses = await Promise.all(['a', 'b'].map(() => send('GET', '/api/sample')))
    expect(await Promise.all(responses.map((response) => response.text()))).toEqual([
      'configureServices,configure,start',
      'configureServices,configure,start',
    ])
  })

  test('is not started by a description', async () => {
    const { calls, hooks } = recorded()
    const { control } = instanceOf(hooks, { startsItself: true })
    expect((await control('GET', '/describe')).body.state).toBe('Loading')
    expect(calls).toEqual(['configureServices'])
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
      eventBus.subscribe('platform.job.failed', () => {})
      eventBus.subscribe('platform.job.failed', () => {})
      eventBus.subscribe('module.other.done', () => {})
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
