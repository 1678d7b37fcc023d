import { callerOf } from '@platform/modules'
import { requestHandlerOf } from '@platform/modules/request-handler'
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

test.for(paths)('rejects %s %s without the token of the deployment', async ([method, path]) => {
  const calls: string[] = []
  const { send, host } = await startedInstance({
    healthChecks: { deep: { tags: [], check: () => ({ status: 'Healthy' }) } },
    jobs: { beat: { description: 'Beats.', intervalSeconds: 60, run: () => void calls.push('job') } },
    stop: () => void calls.push('stop'),
    routes: (app) => void app.all('*', (c) => c.text(String(calls.push('route')))),
  })
  for (const token of ['', 'x', 'token-of-the-deploymenT', 'token-of-the-deployment2', 'token-of-the-deploymen']) {
    const response = await send(method, path, { headers: { 'x-platform-token': token } })
    expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
  }
  expect(calls).toEqual([])
  expect(host.state).toBe('Started')
})

test('rejects all requests if the module has no token', async () => {
  const handle = requestHandlerOf(instanceOf({}).host, '')
  for (const headers of [{}, { 'x-platform-token': '' }]) {
    expect((await handle(new Request('http://module/_platform/v1/describe', { headers }))).status).toBe(403)
  }
})

test('the health endpoint is public, and carries no descriptions or events', async () => {
  const { send, host } = await startedInstance({
    healthChecks: {
      deep: { tags: ['critical'], check: () => ({ status: 'Healthy', description: 'db.internal:5432' }) },
    },
  })
  await host.context.eventBus.publish('module.sample.done', {})
  const response = await send('GET', '/health', { headers: { 'x-platform-token': '' } })
  expect(response.status).toBe(200)
  expect(publishedIn(response)).toEqual([])
  const checks = [{ name: 'deep', status: 'Healthy' }]
  expect(await response.json()).toEqual({ status: 'Healthy', state: 'Started', checks })
  expect(publishedIn(await send('GET', '/api/sample'))).toHaveLength(1)
})

test('rejects control requests of users', async () => {
  const { send, host } = await startedInstance({})
  const headers = { 'x-platform-user': userToken({ aud: 'sample' }) }
  for (const [method, path] of paths.filter(([, path]) => path.startsWith('/_platform/'))) {
    expect((await send(method, path, { headers })).status, path).toBe(403)
  }
  expect(host.state).toBe('Started')
})

test('returns 404 for an unknown control call without calling the module', async () => {
  const { control } = await startedInstance({ routes: (app) => void app.all('*', (c) => c.text('mine')) })
  expect(await control('GET', '/nothing')).toMatchObject({ status: 404, body: { error: 'not_found' } })
  expect((await control('GET', '/configure')).status).toBe(404)
})

test('returns 503 before the start, also for health, which needs no checks', async () => {
  const { send, host } = instanceOf({ routes: (app) => void app.get('/api/sample', (c) => c.text('here')) })
  for (const step of [async () => {}, () => host.configure()]) {
    await step()
    expect((await send('GET', '/api/sample')).status).toBe(503)
    const health = await send('GET', '/health')
    expect([health.status, await health.json()]).toEqual([503, { status: 'Unhealthy', state: host.state, checks: [] }])
  }
  await host.start()
  expect(await (await send('GET', '/api/sample')).text()).toBe('here')
  expect(await (await send('GET', '/health')).json()).toEqual({ status: 'Healthy', state: 'Started', checks: [] })
})

test('returns 500 for a failing route, and only logs its error', async () => {
  const failWithSecret = () => Promise.reject(new Error('password is hunter2'))
  const { send } = await startedInstance({ routes: (app) => void app.get('/api/sample', failWithSecret) })
  let result: unknown
  const lines = await captureLog(async () => {
    const response = await send('GET', '/api/sample')
    result = [response.status, await response.json()]
  })
  expect(result).toEqual([500, { error: 'internal_error', message: 'The module failed.' }])
  expect(lines).toMatchObject([
    { level: 'error', path: '/api/sample', error: { stack: expect.stringContaining('hunter2') } },
  ])
})

test('a module can override the responses for errors and unknown paths', async () => {
  const { send } = await startedInstance({
    routes: (app) => {
      app.get('/api/sample', () => Promise.reject(new Error('Oh.')))
      app.onError((error, c) => c.text(`caught ${error.message}`, 418))
      app.notFound((c) => c.text('lost', 404))
    },
  })
  expect(await (await send('GET', '/api/sample')).text()).toBe('caught Oh.')
  expect(await (await send('GET', '/api/sample/nowhere')).text()).toBe('lost')
})

test('routes do not receive the headers of the platform', async () => {
  const { send } = await startedInstance({
    routes: (app) => void app.get('/api/sample', (c) => c.json(c.req.header())),
  })
  const headers = { 'x-platform-user': userToken({ aud: 'sample' }), accept: 'text/plain' }
  expect(await (await send('GET', '/api/sample', { headers })).json()).toEqual({ accept: 'text/plain' })
})

test('a route cannot set the header of published events', async () => {
  const { send } = await startedInstance({
    routes: (app) =>
      void app.get('/api/sample', (c) => {
        c.header('x-platform-published', 'forged')
        return c.text('')
      }),
  })
  expect((await send('GET', '/api/sample')).headers.get('x-platform-published')).toBeNull()
})

const sendAs = async (token: string | undefined) => {
  const { send } = await startedInstance({
    routes: (app) => void app.get('/api/sample', (c) => c.json(callerOf(c))),
  })
  return send('GET', '/api/sample', { headers: token === undefined ? {} : { 'x-platform-user': token } })
}

test('provides the caller to routes, and returns 401 without one', async () => {
  const response = await sendAs(userToken({ aud: 'sample' }))
  const caller = { userId: 'user_ada', organisationId: 'org_acme', permissions: ['clusters:read'] }
  expect([response.status, await response.json()]).toEqual([200, caller])
  expect((await sendAs(undefined)).status).toBe(401)
})

const seconds = (fromNow: number): number => Math.floor(Date.now() / 1000) + fromNow

test.for([
  ['is for another module', userToken({ aud: 'other' })],
  ['is for several modules', userToken({ aud: ['sample'] })],
  ['has no audience', userToken({})],
  ['has expired', userToken({ aud: 'sample', exp: seconds(-1) })],
  ['expires now', userToken({ aud: 'sample', exp: seconds(0) })],
  ['never expires', userToken({ aud: 'sample', exp: undefined })],
  ['has a text as its expiry', userToken({ aud: 'sample', exp: 'never' })],
  ['has no user', userToken({ aud: 'sample', sub: undefined })],
  ['has no organisation', userToken({ aud: 'sample', org: null })],
  ['has invalid permissions', userToken({ aud: 'sample', permissions: [1] })],
  ['has no payload', 'x'],
  ['has a payload that is not JSON', 'x.eCJ5.z'],
  ['has null as its payload', `x.${Buffer.from('null').toString('base64url')}.z`],
  ['is empty', ''],
] as const)('rejects a user token that %s', async ([, token]) => {
  const response = await sendAs(token)
  expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
})
