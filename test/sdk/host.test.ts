import { type ModuleDefinition } from '@platform/modules'
import { describe, expect, test, vi } from 'vitest'
import { instanceOf, startedInstance } from '../support/sdk-instance.ts'

const hookNames = ['configureServices', 'configure', 'routes', 'start', 'stop', 'dispose'] as const

/** Hooks that write down their names. */
function recorded(): { calls: string[]; hooks: Partial<ModuleDefinition> } {
  const calls: string[] = []
  const hooks = Object.fromEntries(hookNames.map((name) => [name, () => void calls.push(name)]))
  return { calls, hooks }
}

describe('the way through the states', () => {
  test('hooks are called in the order of the specification, each once', async () => {
    const { calls, hooks } = recorded()
    const { host } = instanceOf({
      ...hooks,
      configure: ({ disposables }) => {
        calls.push('configure')
        disposables.defer(() => void calls.push('first in'))
        disposables.defer(() => void calls.push('last in'))
      },
    })
    const states = [host.state]
    for (const step of [() => host.configure(), () => host.start(), () => host.stop(), () => host.dispose()]) {
      await step()
      states.push(host.state)
    }
    expect(calls).toEqual([...hookNames, 'last in', 'first in'])
    expect(states).toEqual(['Loading', 'Configured', 'Started', 'Stopped', 'Disposed'])
  })

  test('what is asked twice, one after the other or at once, is done once', async () => {
    const { calls, hooks } = recorded()
    const { host } = instanceOf(hooks)
    await Promise.all([host.configure(), host.configure()])
    await Promise.all([host.start(), host.start()])
    await Promise.all([host.configure(), host.start()])
    await Promise.all([host.stop(), host.stop(), host.stop()])
    await Promise.all([host.dispose(), host.dispose()])
    expect(calls).toEqual(hookNames)
  })

  test('nothing starts that is not configured, and nothing begins again that has stopped', async () => {
    const { control } = instanceOf({})
    expect(await control('POST', '/start')).toMatchObject({ status: 409, body: { error: 'wrong_state' } })
    await control('POST', '/configure')
    await control('POST', '/stop')
    for (const path of ['/configure', '/start', '/jobs/x']) {
      expect((await control('POST', path)).status, path).toBe(409)
    }
    expect((await control('GET', '/describe')).body.state).toBe('Stopped')
  })

  test('a module that was never started is not stopped, but disposed of', async () => {
    const { calls, hooks } = recorded()
    const { host } = instanceOf(hooks)
    await host.configure()
    await host.stop()
    await host.dispose()
    expect(calls).toEqual(['configureServices', 'configure', 'routes', 'dispose'])
  })

  test('requests under way are answered before anything that they use is disposed of', async () => {
    const calls: string[] = []
    const gate = Promise.withResolvers<void>()
    const { host, ask } = await startedInstance({
      dispose: () => void calls.push('dispose'),
      routes: (app) =>
        void app.get('/api/sample', async (c) => {
          await gate.promise
          calls.push('answer')
          return c.text('answered')
        }),
    })
    const answer = ask('GET', '/api/sample')
    await host.stop()
    const disposed = host.dispose()
    gate.resolve()
    expect(await (await answer).text()).toBe('answered')
    await disposed
    expect(calls).toEqual(['answer', 'dispose'])
  })

  test('a request that is never answered keeps nothing from being disposed of', async () => {
    const calls: string[] = []
    const { host, ask } = await startedInstance({
      dispose: () => void calls.push('dispose'),
      routes: (app) => void app.get('/api/sample', () => new Promise<Response>(() => {})),
    })
    void ask('GET', '/api/sample')
    vi.useFakeTimers()
    const disposed = host.stop().then(() => host.dispose())
    await vi.advanceTimersByTimeAsync(5001)
    vi.useRealTimers()
    await disposed
    expect(calls).toEqual(['dispose'])
  })

  test('stop and dispose know the module as the other hooks do', async () => {
    const given: unknown[] = []
    const { host } = instanceOf({
      start: (signal, context) => void given.push(signal instanceof AbortSignal, context.module),
      stop: (signal, context) => void given.push(signal instanceof AbortSignal, context.module),
      dispose: (context) => void given.push(context.module),
    })
    await host.configure()
    await host.start()
    await host.stop()
    await host.dispose()
    const module = { id: 'sample', version: '1.2.3' }
    expect(given).toEqual([true, module, true, module, module])
  })
})

describe('a module that starts itself', () => {
  test('is configured and started by whatever is asked first, and asked then', async () => {
    const { calls, hooks } = recorded()
    const { ask } = instanceOf(
      { ...hooks, routes: (app) => app.get('/api/sample', (c) => c.text(calls.join())) && undefined },
      { startsItself: true },
    )
    const answers = await Promise.all(['a', 'b'].map(() => ask('GET', '/api/sample')))
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual([
      'configureServices,configure,start',
      'configureServices,configure,start',
    ])
  })

  test('does nothing by itself when it is only described', async () => {
    const { calls, hooks } = recorded()
    const { control } = instanceOf(hooks, { startsItself: true })
    expect((await control('GET', '/describe')).body.state).toBe('Loading')
    expect(calls).toEqual(['configureServices'])
  })

  test('does not come back from the dead', async () => {
    const { ask, host } = instanceOf({}, { startsItself: true })
    await host.configure()
    await host.start()
    await host.stop()
    expect((await ask('GET', '/api/sample')).status).toBe(503)
  })
})

test('a description tells all that a manifest is made of, and what the module has subscribed to', async () => {
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
