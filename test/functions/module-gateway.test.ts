import { expect, test, vi } from 'vitest'
import { modulePaths } from '@platform/contract/passage'
import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { moduleProxy } from '@platform/http/proxy/proxy'
import { callModule } from '@platform/worker/modules/call'
import { notAskedHeader } from '@platform/modules/protocol'
import { waitFor } from '../support/wait-for.ts'
import { handler as auth } from '../../functions/auth.ts'
import { handler as meta } from '../../functions/meta.ts'
import { type TestResponse, send } from '../support/request.ts'
import { reserveRoutes, newModuleId, runInstance } from '../support/hostile-module.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { bearer } from '../support/fixtures.ts'
import { ada, aSecondLater, answering, ask, get } from './module-traffic.ts'

await vi.hoisted(() => {
  // Requests go past the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

test.for([
  '',
  '?',
  '/api/nobody',
  '/api/nobody/x?y=1',
  '/modules/nobody',
  '/api/v1/nobody',
  '/api/modules',
  '/api/v1/clusters',
])('where no module answers, %s is answered as any unknown path: no token is asked for', async (target) => {
  const [answer, usual] = [await get(target, {}), await send(meta, { target: '/nobody' })]
  const { traceId, ...body } = answer.json
  expect([answer.status, body]).toEqual([404, { error: usual.json.error, message: usual.json.message }])
  expect(Object.keys(answer.headers).toSorted()).toEqual(Object.keys(usual.headers).toSorted())
  expect(answer.headers['x-trace-id']).toBe(traceId)
})

test('a module answers its API path and its pages, and everything below them', async () => {
  await using module = await runInstance()
  const { api, moduleId } = module
  const paths = [api, `${api}/`, `${api}/a/b?c=d&e=%C3%A4+%2F&c=2`, `/modules/${moduleId}`, `/modules/${moduleId}/page`]
  for (const path of paths) expect(await get(path)).toMatchObject({ status: 200, text: 'ok' })
  expect(module.requests.map(({ url }) => url)).toEqual(paths)
  for (const path of [`${api}x`, `${api}-x`, `/modules/${moduleId}x`]) expect((await get(path)).status).toBe(404)
  expect(module.requests).toHaveLength(paths.length)
})

test.for([
  ['without a token', {}],
  ['with another scheme', { authorization: 'Basic YTpi' }],
  ['with a token that is none', { authorization: 'Bearer x.y.z' }],
  ['with an API token that does not exist', { authorization: `Bearer plat_${newId('tok')}_${'a'.repeat(43)}` }],
] as const)('%s nobody reaches a module', async ([, headers]) => {
  await using module = await runInstance()
  const answer = await get(module.api, headers)
  expect([answer.status, answer.json.error]).toEqual([401, 'unauthenticated'])
  expect(answer.headers['www-authenticate']).toBe('Bearer')
  expect(module.requests).toEqual([])
})

test('an access token that has expired is told from one that is none', async () => {
  await using module = await runInstance()
  const headers = await bearer(['Viewer'])
  await get(module.api, headers)
  shiftClock(901_000)
  const { json } = await get(module.api, headers)
  shiftClock(-901_000)
  expect(json.error).toBe('token_expired')
})

test('a module that does not answer is given up, and its callers are told so', async () => {
  const impatient = moduleProxy((deployment, request) =>
    callModule(deployment, request, { timeoutMs: 100, maxBytes: 1000 }),
  )
  await using module = await runInstance(() => undefined)
  const answer = await send(impatient, { target: module.api, headers: ada })
  expect([answer.status, answer.json.error]).toEqual([504, 'module_timeout'])
})

test('a module that is being started or stopped has heard nothing: its callers are told to try again', async () => {
  await using module = await runInstance(answering({ [notAskedHeader]: '1' }, '{"error":"wrong_state"}', 503))
  const answer = await get(module.api)
  expect([answer.status, answer.json.error]).toEqual([503, 'module_unavailable'])
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
})

test('a request that a release has not taken any more reaches the one that has replaced it', async () => {
  await using old = await runInstance(answering({ [notAskedHeader]: '1' }, '{}', 503))
  await using next = await runInstance(answering({}, 'from the next one'), { moduleId: old.moduleId, isClaimed: false })
  // What is known was read just before the other one took its place.
  expect((await get('/api/nobody')).status).toBe(404)
  await reserveRoutes(old.moduleId, { apiBasePath: old.api, deployment: next.deployment })
  expect((await get(old.api)).text).toBe('from the next one')
  expect(next.requests).toHaveLength(1)
})

test('a module that does not run is told from one that failed: nothing has reached it, and trying again may help', async () => {
  await using module = await runInstance()
  await get(module.api)
  await module.end()
  const answer = await get(module.api)
  expect([answer.status, answer.json.error]).toEqual([503, 'module_unavailable'])
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
})

test('a module that is being installed is not running yet, and only those who may ask are told', async () => {
  const moduleId = newModuleId()
  const apiBasePath = `/api/${moduleId}`
  await reserveRoutes(moduleId, { apiBasePath })
  aSecondLater()
  expect((await get(apiBasePath, {})).status).toBe(401)
  expect((await get(apiBasePath)).json.error).toBe('module_unavailable')
})

/** A module that runs somewhere else by now than its gateway knows. */
async function moved() {
  const old = await runInstance()
  const { moduleId, api } = old
  const current = await runInstance(undefined, { moduleId, isClaimed: false })
  await get(api)
  await reserveRoutes(moduleId, { apiBasePath: api, deployment: current.deployment })
  shiftClock(200)
  const dispose = async () => {
    await Promise.all([old, current].map((each) => each[Symbol.asyncDispose]()))
  }
  return { old, current, api, [Symbol.asyncDispose]: dispose }
}

test('an upgrade loses no request: what does not reach the old instance goes to the new one', async () => {
  await using module = await moved()
  await module.old.end()
  const answers = await Promise.all([1, 2, 3].map(() => ask({ method: 'POST', target: module.api, body: 'once' })))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(module.current.requests.map(({ body }) => String(body))).toEqual(['once', 'once', 'once'])
})

test('what has reached an instance is not asked of another one', async () => {
  await using module = await moved()
  module.old.respondWith((_, response) => void response.destroy())
  expect((await ask({ method: 'POST', target: module.api, body: 'once' })).status).toBe(502)
  expect([module.old.requests.length, module.current.requests.length]).toEqual([2, 0])
})

test('a module that was removed is unknown at once where it does not answer any more, and a second later in any case', async () => {
  await using removed = await runInstance()
  await using orphan = await runInstance()
  for (const { api } of [removed, orphan]) expect((await get(api)).status).toBe(200)
  for (const { moduleId } of [removed, orphan]) await reserveRoutes(moduleId, undefined)
  await removed.end()
  shiftClock(200)
  expect((await get(removed.api)).json.error).toBe('route_not_found')
  aSecondLater()
  expect((await get(orphan.api)).json.error).toBe('route_not_found')
})

test('a module that was installed a moment ago is found, although its path was unknown just before', async () => {
  await using module = await runInstance(undefined, { isClaimed: false })
  const { moduleId, api, deployment } = module
  expect((await get(api)).status).toBe(404)
  await reserveRoutes(moduleId, { apiBasePath: api, deployment })
  shiftClock(150)
  expect((await get(api)).status).toBe(200)
})

const forgeries = ['/api/v1', '/api/v2', '/api/modules', '/api', '', '/', '/modules', '/relay', '/modules/{other}']

test.for(forgeries.flatMap((path) => [[path, '0'] as const, [path, 'z'] as const]))(
  'a claim of %j that nobody could have made, before or after those of others, shadows nothing',
  async ([forgery, first]) => {
    const moduleId = first + newModuleId()
    await using forged = await runInstance(undefined, { moduleId, isClaimed: false })
    await using other = await runInstance()
    const apiBasePath = forgery.replace('{other}', other.moduleId)
    await reserveRoutes(moduleId, { apiBasePath, deployment: forged.deployment })
    aSecondLater()
    const platform = [
      '/api/v1/clusters',
      '/api/v1',
      '/api/v12/x',
      '/api/modules',
      '/api/modules/install',
      '/relay/x',
      '/',
    ]
    for (const path of platform) expect([path, (await get(path)).status]).toEqual([path, 404])
    for (const path of [other.api, `/modules/${other.moduleId}`]) expect((await get(path)).status).toBe(200)
    expect([forged.requests, other.requests.length]).toEqual([[], 2])
    expect((await get(`/modules/${moduleId}`)).status).toBe(200)
    await reserveRoutes(moduleId, undefined)
  },
)

test('the paths that lead here are those that modules can have', () => {
  expect(modulePaths).toMatchObject({ function: 'gateway/modules', paths: ['/api/{proxy+}', '/modules/{proxy+}'] })
})

test('one module that hangs takes nothing from the others, and is not asked by ever more callers at once', async () => {
  await using hanging = await runInstance(() => undefined)
  await using other = await runInstance()
  const [neighbour, third] = [await bearer(['Viewer']), await bearer(['Viewer'])]
  const waiting: Promise<TestResponse>[] = []
  for (const headers of [ada, neighbour]) {
    waiting.push(...Array.from({ length: 50 }, () => get(hanging.api, headers)))
    await waitFor('all of them wait', async () => hanging.requests.length === waiting.length)
    // One organisation leaves room for the others; and all of them together for other modules.
    for (const refused of [headers, ...(waiting.length === 100 ? [third] : [])]) {
      const answer = await get(hanging.api, refused)
      const { status, json, headers: told } = answer
      expect([status, json.error, told['retry-after']]).toEqual([503, 'module_unavailable', '1'])
    }
  }
  expect((await get(other.api)).status).toBe(200)
  expect(hanging.requests).toHaveLength(100)
  hanging.closeConnections()
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 502))
  hanging.respondWith(answering({}))
  expect((await get(hanging.api)).status).toBe(200)
})

test('a request to a module costs the store nothing, but for one look in a second', async () => {
  await using module = await runInstance()
  await get(module.api)
  aSecondLater()
  expect(await countStoreCalls(() => get(module.api))).toBe(1)
  expect(await countStoreCalls(() => Promise.all([1, 2, 3].map(() => get(module.api))))).toBe(0)
  aSecondLater()
  expect(await countStoreCalls(() => Promise.all([1, 2, 3].map(() => get(module.api))))).toBe(1)
  aSecondLater()
  for (const path of ['/api/v1/nobody', '/api/modules/x', '/api'])
    expect(await countStoreCalls(() => get(path))).toBe(0)
  const guesses = Array.from({ length: 50 }, (_, index) => get(`/api/guess-${index}`, {}))
  expect(await countStoreCalls(() => Promise.all(guesses))).toBeLessThanOrEqual(1)
})

const left = async (answer: Promise<TestResponse>) => Number((await answer).headers['ratelimit-remaining'])

test('a user’s calls of modules count with those of the platform', async () => {
  await using module = await runInstance()
  const headers = await bearer(['Viewer'])
  vi.useFakeTimers({ toFake: ['Date'] })
  const counts = [
    await left(get(module.api, headers)),
    await left(send(auth, { target: '/api/v1/auth/me', headers })),
    await left(get(`/modules/${module.moduleId}`, headers)),
  ]
  vi.useRealTimers()
  const [first = 0] = counts
  expect(counts).toEqual([first, first - 1, first - 2])
})
