import { expect, test } from 'vitest'
import { answered } from '../../conformance/answer.ts'
import type { Client } from '../../conformance/client.ts'
import { checksOf, entriesOf, inCatalog, over } from '../../conformance/modules.ts'
import type { Platform } from '../../conformance/platform.ts'
import { until } from '../../conformance/until.ts'
import { failpointsIn } from '../support/failpoints.ts'
import { PlatformProcess } from '../support/platform.ts'

const helloPath = '/api/v1/modules/hello'
const uninstalling = ['module.stopped', 'module.forgotten']
const undoing = ['module.undone']
/** Where events are handed over, and where modules are looked at: nobody has to ask for that. */
const anytime = ['module.delivered', 'module.probed']

const installing = failpointsIn('packages/modules').filter(
  (name) => name.startsWith('module.') && ![...uninstalling, ...undoing, ...anytime].includes(name),
)

const answers = (admin: Client) =>
  until('hello answers', async () => {
    const { status, body } = await admin.get('/api/hello')
    return status === 200 && body.moduleId === 'hello'
  })

/** Everything that a running `hello` shows of itself, and that there is one of it. */
async function expectRunning(api: Platform, admin: Client): Promise<void> {
  // Modules start again with the platform, and some moments later than it.
  await answers(admin)
  expect(answered(await admin.get(helloPath), 200)).toMatchObject({ state: 'Running' })
  expect(await entriesOf(admin, 'hello')).toHaveLength(1)
  await until('the health page tells of it', async () => (await checksOf(api, 'hello')).length === 1)
}

async function expectGone(api: Platform, admin: Client): Promise<void> {
  answered(await admin.get('/api/hello'), 404, 'route_not_found')
  answered(await admin.get(helloPath), 404, 'module_not_found')
  expect([await entriesOf(admin, 'hello'), await checksOf(api, 'hello')]).toEqual([[], []])
  expect(await inCatalog(admin, 'hello')).toMatchObject({ installed: false })
}

test('modules are installed and uninstalled once and whole, wherever kill -9 strikes, and run again after each start', async () => {
  const settings = { PLAT_OPERATION_LEASE_SECONDS: '3', PLAT_MODULE_TICK_SECONDS: '1' }
  await using platform = await PlatformProcess.start(settings)
  const api = await platform.setUp()
  const admin = await api.admin
  await until('hello is in the catalog', async () => (await inCatalog(admin, 'hello')) !== undefined)
  const endings = [...uninstalling]
  let kills = 0

  /** Has the platform die at a place while it does what was asked for, and end it after its restart. */
  async function killedAt(name: string, ask: () => Promise<any>): Promise<void> {
    await platform.kill()
    await platform.restart({ PLAT_FAILPOINT: `${name}=kill` })
    const accepted = answered(await ask(), 202)
    await platform.ended
    expect(platform.text).toContain(`failpoint ${name}`)
    kills++
    await platform.restart()
    expect(await over(api, accepted)).toMatchObject({ status: 'Completed' })
  }

  for (const name of installing) {
    await killedAt(name, () => admin.post(`${helloPath}/install`, {}))
    await expectRunning(api, admin)
    const ending = endings.shift()
    if (ending !== undefined) await killedAt(ending, () => admin.delete(helloPath))
    else expect(await over(api, answered(await admin.delete(helloPath), 202))).toMatchObject({ status: 'Completed' })
    await expectGone(api, admin)
  }

  answered(await admin.post(`${helloPath}/install`, {}), 202)
  await answers(admin)
  await platform.kill()
  await platform.restart({ PLAT_FAILPOINT: 'module.probed=kill' })
  await platform.ended
  await platform.restart()
  await answers(admin)
  console.log(`${kills + 1} kills: hello is there once, or not at all.`)
}, 600_000)
