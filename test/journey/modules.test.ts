import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { checksOf, inCatalog, over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitForNoLeftovers, processesOf } from '../support/leftovers.ts'
import { isLong } from '../support/long.ts'
import { PlatformProcess } from '../support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

/** The processes of the reference module; its API is in the conformance suite. The tests run in order. */

const resources = new AsyncDisposableStack()
let platform: PlatformProcess
let api: Platform
let admin: Client
let organisationId: string
/** The log before the last restart. */
let earlier = ''

beforeAll(async () => {
  platform = resources.use(await PlatformProcess.start({ PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1' }))
  api = await platform.setUp()
  admin = await api.admin
  organisationId = expectStatus(await admin.get('/api/v1/auth/me'), 200).organisationId
})
afterAll(() => resources.disposeAsync())

const finishedJob = async (accepted: ReturnType<Client['post']>) => over(api, expectStatus(await accepted, 202))
const install = () => finishedJob(admin.post('/api/v1/modules/hello/install', {}))
const processIds = async () => (await processesOf(organisationId, 'hello')).map(({ processId }) => processId)

const heartbeats = (): any[] =>
  (earlier + platform.text)
    .split('\n')
    .filter((line) => line.includes('"The hello module is alive"'))
    .map((line) => JSON.parse(line))

const expectHealthy = () =>
  waitFor('hello-module to be Healthy', async () =>
    (await checksOf(api, 'hello')).some(({ name, status }) => name === 'hello-module' && status === 'Healthy'),
  )

test('runs the installation as a job with steps', async () => {
  const job = await install()
  expect(job).toMatchObject({ type: 'ModuleInstall', status: 'Completed', result: { exitCode: 0 } })
  const names = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish']
  expect(job.steps.map(({ name, status }: any) => [name, status])).toEqual(names.map((name) => [name, 'Completed']))
  await expectHealthy()
  const [first] = await waitFor('a heartbeat', async () => heartbeats().length > 0 && heartbeats())
  expect(first).toMatchObject({ module_id: 'hello', category: 'heartbeat' })
})

test.for(isLong ? (['stop', 'kill'] as const) : (['kill'] as const))(
  'restarts the module after a %s of the platform and leaves no old process',
  async (end) => {
    const before = await processIds()
    expect(before.length).toBeGreaterThan(0)
    await platform[end]()
    await waitFor('all processes of hello to end', async () => (await processIds()).length === 0)
    earlier += platform.text
    await platform.restart()
    await waitFor('hello to answer', async () => (await admin.get('/api/hello')).status === 200)
    expect((await processIds()).some((id) => before.includes(id))).toBe(false)
    await expectHealthy()
  },
)

// It takes a minute; test/worker shows the schedule with a clock that tests move.
test.runIf(isLong)('requests the heartbeat once a minute', { timeout: 200_000 }, async () => {
  const [first, second] = await waitFor('a second heartbeat', async () => heartbeats().length > 1 && heartbeats(), 180)
  // Heartbeats lie on a grid of minutes; only a slow machine brings two of them closer together.
  expect(Date.parse(second.time) - Date.parse(first.time)).toBeGreaterThan(30_000)
})

test('leaves no files, processes or database entries after uninstalling', async () => {
  expect(await finishedJob(admin.delete('/api/v1/modules/hello'))).toMatchObject({
    type: 'ModuleUninstall',
    status: 'Completed',
  })
  expect(await inCatalog(admin, 'hello')).toMatchObject({ installed: false })
  await waitForNoLeftovers(platform)
  expect(await processIds()).toEqual([])
})

test('reinstalls the module, and removes it by its other path', async () => {
  expect((await install()).status).toBe('Completed')
  expectStatus(await admin.get('/api/hello'), 200)
  expect((await finishedJob(admin.delete('/api/modules/hello'))).status).toBe('Completed')
  await waitForNoLeftovers(platform)
})
