import { afterAll, beforeAll, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { checksOf, entriesOf, inCatalog, over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { until } from '../conformance/support/until.ts'
import { isLong } from '../support/long.ts'
import { PlatformProcess } from '../support/platform.ts'
import { nothingRemainsOf, processesOf } from '../support/remains.ts'

/** What a user does with the reference module, from the catalog to its removal. One test follows another. */

const resources = new AsyncDisposableStack()
let platform: PlatformProcess
let api: Platform
let admin: Client
let organisationId: string
/** What the platform had written before it was started last. */
let earlier = ''

beforeAll(async () => {
  platform = resources.use(await PlatformProcess.start({ PLAT_MODULE_TICK_SECONDS: '1' }))
  api = await platform.setUp()
  admin = await api.admin
  organisationId = answered(await admin.get('/api/v1/auth/me'), 200).organisationId
})
afterAll(() => resources.disposeAsync())

/** Asks for something that becomes a job, and answers how that ended. */
const done = async (asked: ReturnType<Client['post']>) => over(api, answered(await asked, 202))
const install = () => done(admin.post('/api/v1/modules/hello/install', {}))

const heartbeats = (): any[] =>
  (earlier + platform.text)
    .split('\n')
    .filter((line) => line.includes('"The hello module is alive"'))
    .map((line) => JSON.parse(line))

const isHealthy = () =>
  until('the health page lists hello-module as Healthy', async () =>
    (await checksOf(api, 'hello')).some(({ name, status }) => name === 'hello-module' && status === 'Healthy'),
  )

const processIds = async () => (await processesOf(organisationId, 'hello')).map(({ processId }) => processId)

async function restarted(end: () => Promise<unknown>): Promise<void> {
  const before = await processIds()
  expect(before.length).toBeGreaterThan(0)
  await end()
  await until('no process of hello is left', async () => (await processIds()).length === 0)
  earlier += platform.text
  await platform.restart()
  await until('hello answers again', async () => (await admin.get('/api/hello')).status === 200)
  expect((await processIds()).some((id) => before.includes(id))).toBe(false)
}

test('the catalog lists hello as verified and not installed, and nothing of it is there', async () => {
  const item = await inCatalog(admin, 'hello')
  expect(item).toMatchObject({ name: 'Hello World', version: '1.0.0', verified: true, installed: false })
  answered(await admin.get('/api/hello'), 404, 'route_not_found')
  expect(await entriesOf(admin, 'hello')).toEqual([])
})

test('its installation is a job whose steps can be followed', async () => {
  const accepted = answered(await admin.post('/api/v1/modules/hello/install', {}), 202)
  expect(accepted).toMatchObject({ moduleId: 'hello', version: '1.0.0', status: 'Installing', verified: true })
  const job = await over(api, accepted)
  expect(job).toMatchObject({ type: 'ModuleInstall', status: 'Completed', result: { exitCode: 0 } })
  const names = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish']
  expect(job.steps.map(({ name, status }: any) => [name, status])).toEqual(names.map((name) => [name, 'Completed']))
})

test('the navigation has its entry, and its API answers id, version and time to whoever is signed in', async () => {
  expect(await entriesOf(admin, 'hello')).toMatchObject([{ label: 'Hello World', route: '/modules/hello', order: 100 }])
  answered(await api.anonymous.get('/api/hello'), 401, 'unauthenticated')
  const greeting = answered(await admin.get('/api/hello'), 200)
  expect(greeting).toMatchObject({ moduleId: 'hello', moduleVersion: '1.0.0', message: expect.stringMatching(/./) })
  expect(new Date(greeting.timestamp).toISOString()).toBe(greeting.timestamp)
})

test('its page is HTML that a browser keeps apart from the portal', async () => {
  const { text, headers } = await admin.get('/modules/hello')
  expect(headers.get('content-type')).toMatch(/^text\/html/)
  expect(text).toContain('<h1>')
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toMatch(/^sandbox /)
  expect(policy).not.toContain('allow-same-origin')
})

test('the health page lists it, and its heartbeat is in the log', async () => {
  await isHealthy()
  const [first] = await until('it has beaten', async () => heartbeats().length > 0 && heartbeats())
  expect(first).toMatchObject({ module_id: 'hello', category: 'heartbeat' })
})

test.runIf(isLong)(
  'it runs again by itself after the platform was stopped, and nothing of its old process is left',
  async () => {
    await restarted(() => platform.stop())
    await isHealthy()
  },
)

test('it runs again by itself after the platform was killed, and nothing of its old process is left', async () => {
  await restarted(() => platform.kill())
  await isHealthy()
  expect(answered(await admin.get('/api/v1/modules/hello'), 200)).toMatchObject({ state: 'Running', health: 'Healthy' })
})

// A minute of waiting: that the platform asks for it on time is shown where time can be moved.
test.runIf(isLong)(
  'its heartbeat is there every minute, however often the platform looks at it',
  async () => {
    const [first, second] = await until('it has beaten again', async () => heartbeats().length > 1 && heartbeats(), 180)
    const seconds = (Date.parse(second.time) - Date.parse(first.time)) / 1000
    console.log(`The second heartbeat came ${seconds} s after the first.`)
    // It is called on a grid of minutes; only a machine that is slower than that would be nearer.
    expect(seconds).toBeGreaterThan(30)
  },
  200_000,
)

test('once it is uninstalled all of it is gone', async () => {
  expect(await done(admin.delete('/api/v1/modules/hello'))).toMatchObject({
    type: 'ModuleUninstall',
    status: 'Completed',
  })
  expect([await entriesOf(admin, 'hello'), await checksOf(api, 'hello')]).toEqual([[], []])
  for (const path of ['/api/hello', '/modules/hello']) answered(await admin.get(path), 404, 'route_not_found')
  answered(await admin.get('/api/v1/modules/hello'), 404, 'module_not_found')
  expect(await inCatalog(admin, 'hello')).toMatchObject({ installed: false })
  await nothingRemainsOf(platform)
  expect(await processIds()).toEqual([])
})

test('it can be installed again, and removed by the path of its own documentation', async () => {
  expect((await install()).status).toBe('Completed')
  answered(await admin.get('/api/hello'), 200)
  expect((await done(admin.delete('/api/modules/hello'))).status).toBe('Completed')
  await nothingRemainsOf(platform)
})
