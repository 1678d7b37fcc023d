import { expect, test } from 'vitest'
import { instanceOf, publishedIn, startedInstance } from '../support/sdk-instance.ts'
import { captureLog } from '../support/log.ts'
import { userToken } from '../support/user-token.ts'

const paths = [
  ['GET', '/_platform/v1/describe'],
  ['POST', '/_platform/v1/configure'],
  ['POST', '/_platform/v1/start'],
  ['POST', '/_platform/v1/stop'],
  ['POST', '/_platform/v1/dispose'],
  ['GET', '/_platform/v1/health/deep'],
  ['POST', '/_platform/v1/jobs/beat'],
  ['POST', '/_platform/v1/events'],
  ['GET', '/_platform/v1/nothing'],
  ['GET', '/health/deep'],
  ['POST', '/health'],
  ['GET', '/health/'],
  ['GET', '//health'],
  ['GET', '/api/sample'],
  ['GET', '/modules/sample'],
] as const

test.for(paths)('%s %s is answered to nobody without the token of the deployment', async ([method, path]) => {
  const calls: string[] = []
  const { ask, host } = await startedInstance({
    healthChecks: { deep: { tags: [], check: () => ({ status: 'Healthy' }) } },
    jobs: { beat: { description: 'Beats.', intervalSeconds: 60, run: () => void calls.push('job') } },
    stop: () => void calls.push('stop'),
    routes: (app) => void app.all('*', (c) => c.text(String(calls.push('route')))),
  })
  for (const token of ['', 'x', 'token-of-the-deploymenT', 'token-of-the-deployment2', 'token-of-the-deploymen']) {
    const response = await ask(method, path, { headers: { 'x-platform-token': token } })
    expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
  }
  expect(calls).toEqual([])
  expect(host.state).toBe('Started')
})

test('a module without a token answers nobody', async () => {
  const { answerOf } = await import('@platform/modules/answer')
  const answer = answerOf(instanceOf({}).host, '')
  for (const headers of [{}, { 'x-platform-token': '' }]) {
    expect((await answer(new Request('http://module/_platform/v1/describe', { headers }))).status).toBe(403)
  }
})

test('the health of a module is public, and nothing else goes with it', async () => {
  const { ask, host } = await startedInstance({
    healthChecks: {
      deep: { tags: ['critical'], check: () => ({ status: 'Healthy', description: 'db.internal:5432' }) },
    },
  })
  await host.context.eventBus.publish('module.sample.done', {})
  const response = await ask('GET', '/health', { headers: { 'x-platform-token': '' } })
  expect(response.status).toBe(200)
  expect(publishedIn(response)).toEqual([])
  expect(await response.json()).toEqual({
    status: 'Healthy',
    state: 'Started',
    checks: [{ name: 'deep', status: 'Healthy' }],
  })
  expect(publishedIn(await ask('GET', '/api/sample'))).toHaveLength(1)
})

test('what comes from a user is never about the instance, even if a gateway let its path through', async () => {
  const { ask, host } = await startedInstance({})
  const headers = { 'x-platform-user': userToken({ aud: 'sample' }) }
  for (const [method, path] of paths.filter(([, path]) => path.startsWith('/_platform/'))) {
    expect((await ask(method, path, { headers })).status, path).toBe(403)
  }
  expect(host.state).toBe('Started')
})

test('an unknown control call is not found, and never reaches the module', async () => {
  const { control } = await startedInstance({ routes: (app) => void app.all('*', (c) => c.text('mine')) })
  expect(await control('GET', '/nothing')).toEqual({
    status: 404,
    body: { error: 'not_found', message: expect.any(String) },
  })
  expect((await control('GET', '/configure')).status).toBe(404)
})

test('before it has started, a module’s routes answer 503 and its health says so', async () => {
  const { ask, host } = instanceOf({ routes: (app) => void app.get('/api/sample', (c) => c.text('here')) })
  for (const step of [async () => {}, () => host.configure()]) {
    await step()
    expect((await ask('GET', '/api/sample')).status).toBe(503)
    const health = await ask('GET', '/health')
    expect([health.status, await health.json()]).toEqual([503, { status: 'Unhealthy', state: host.state, checks: [] }])
  }
  await host.start()
  expect(await (await ask('GET', '/api/sample')).text()).toBe('here')
})

test('a route that throws answers 500 and tells its secrets to the log alone', async () => {
  const { ask } = await startedInstance({
    routes: (app) =>
      void app.get('/api/sample', () => {
        throw new Error('password is hunter2')
      }),
  })
  let answer: unknown
  const lines = await captureLog(async () => {
    const response = await ask('GET', '/api/sample')
    answer = [response.status, await response.json()]
  })
  expect(answer).toEqual([500, { error: 'internal_error', message: 'The module failed.' }])
  expect(lines).toMatchObject([
    { level: 'error', path: '/api/sample', error: { stack: expect.stringContaining('hunter2') } },
  ])
})

test('a module decides itself what it answers to errors and unknown paths', async () => {
  const { ask } = await startedInstance({
    routes: (app) => {
      app.get('/api/sample', () => {
        throw new Error('Oh.')
      })
      app.onError((error, c) => c.text(`caught ${error.message}`, 418))
      app.notFound((c) => c.text('lost', 404))
    },
  })
  expect(await (await ask('GET', '/api/sample')).text()).toBe('caught Oh.')
  expect(await (await ask('GET', '/api/sample/nowhere')).text()).toBe('lost')
})

test('routes never see what platform and SDK know each other by', async () => {
  const { ask } = await startedInstance({ routes: (app) => void app.get('/api/sample', (c) => c.json(c.req.header())) })
  const headers = { 'x-platform-user': userToken({ aud: 'sample' }), accept: 'text/plain' }
  expect(await (await ask('GET', '/api/sample', { headers })).json()).toEqual({ accept: 'text/plain' })
})

test('a module cannot forge what it has published', async () => {
  const { ask } = await startedInstance({
    routes: (app) =>
      void app.get('/api/sample', (c) => {
        c.header('x-platform-published', 'forged')
        return c.text('')
      }),
  })
  expect((await ask('GET', '/api/sample')).headers.get('x-platform-published')).toBeNull()
})
