import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { checksOf, entriesOf, inCatalog, over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { until } from '../conformance/support/until.ts'
import { type Author, startAuthor } from '../support/author.ts'
import { missing } from '../support/peers.ts'
import { PlatformProcess } from '../support/platform.ts'
import { nothingRemainsOf, processesOf } from '../support/remains.ts'

/** Modules of somebody else, from a registry of somebody else. One test follows another. */

const reason = missing('docker-registry', 'skopeo')
const modulePath = '/api/v1/modules/versioned'
const navSlots = [
  { slotId: 'nav.primary', id: 'versioned', label: 'Versions', icon: 'layers', route: '/modules/versioned', order: 70 },
]
const spec = {
  navSlots,
  backgroundJobs: [{ id: 'tick', description: 'Ticks.', intervalSeconds: 1 }],
  healthChecks: [{ name: 'version', path: '/health', tags: ['critical'] }],
}

describe.skipIf(reason !== '')(`modules of another registry${reason}`, () => {
  const resources = new AsyncDisposableStack()
  let author: Author
  let platform: PlatformProcess
  let api: Platform
  let admin: Client

  beforeAll(async () => {
    author = resources.use(await startAuthor())
    platform = resources.use(await PlatformProcess.start({ ...author.settings, PLAT_MODULE_TICK_SECONDS: '1' }))
    api = await platform.setUp()
    admin = await api.admin
  })
  afterAll(() => resources.disposeAsync())

  const publish = (version: string, how = '') =>
    author.publish('versioned', { version, program: `told versioned ${version} ${how}`.trim(), spec })

  const scanned = (version: string) =>
    until(`the catalog has ${version}`, async () => {
      answered(await admin.post('/api/v1/modules/catalog/scan'), 202)
      const item = await inCatalog(admin, 'versioned')
      return item?.version === version && item
    })
  const done = async (asked: ReturnType<Client['post']>) => over(api, answered(await asked, 202))
  const deploymentIds = async () => {
    const { organisationId } = answered(await admin.get('/api/v1/auth/me'), 200)
    return new Set((await processesOf(organisationId, 'versioned')).map(({ deploymentId }) => deploymentId))
  }
  const running = async () => answered(await admin.get('/api/versioned'), 200).version

  test('what is pushed by skopeo and signed is in the catalog after the next scan, verified by the name of its key', async () => {
    await publish('1.0.0')
    expect(await scanned('1.0.0')).toMatchObject({
      name: 'Module versioned',
      verified: true,
      verifiedBy: 'author',
      installed: false,
      catalogSource: `${author.host}/modules/versioned`,
    })
  })

  test('it is installed from the catalog, and answers, is shown, is healthy and is called at every tick', async () => {
    const job = await done(admin.post(`${modulePath}/install`, { version: '1.0.0' }))
    expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed' })
    expect(await running()).toBe('1.0.0')
    answered(await api.anonymous.get('/api/versioned'), 401, 'unauthenticated')
    expect(await entriesOf(admin, 'versioned')).toMatchObject(navSlots)
    await until('the health page tells of it', async () => (await checksOf(api, 'versioned'))[0]?.status === 'Healthy')
    const tick = /"message":"tick"[^\n]*"module_id":"versioned"/g
    await until('it is called again and again', async () => platform.text.match(tick)?.[2])
  })

  test('an upgrade loses no request: not the ones that come meanwhile, not the ones that are under way', async () => {
    await publish('1.1.0')
    expect(await scanned('1.1.0')).toMatchObject({ installedVersion: '1.0.0', updateAvailable: true })
    const answers: any[] = []
    const stop = new AbortController()
    const call = async (path: string) => {
      while (!stop.signal.aborted) {
        const { status, body } = await admin.get(path)
        answers.push({ status, ...body })
      }
    }
    const paths = ['', '', '', '', '', '', '/slow', '/slow', '/slow', '/slow']
    const callers = paths.map((path) => call(`/api/versioned${path}`))
    await until('they are answered', async () => answers.length > 20)
    const job = await done(admin.post(`${modulePath}/install`, {}))
    await until('nothing of the old version is left', async () => (await deploymentIds()).size === 1)
    stop.abort()
    await Promise.all(callers)
    expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed' })
    expect(answers.filter(({ status, isOpen }) => status !== 200 || !isOpen)).toEqual([])
    expect(new Set(answers.map(({ version }) => version))).toEqual(new Set(['1.0.0', '1.1.0']))
    expect(await running()).toBe('1.1.0')
    console.log(`${answers.length} requests were answered while 1.1.0 took the place of 1.0.0.`)
  })

  test('a version that cannot be configured leaves the one that runs alone, and says why', async () => {
    const before = await deploymentIds()
    await publish('1.2.0', 'throws')
    await scanned('1.2.0')
    const job = await done(admin.post(`${modulePath}/install`, {}))
    expect(job).toMatchObject({
      status: 'Failed',
      statusReason: 'module_operation_failed',
      result: { exitCode: 1, output: expect.stringContaining('This version cannot be configured.') },
    })
    expect(job.steps.find(({ status }: any) => status === 'Failed')).toMatchObject({ name: 'configure' })
    expect(platform.text).toContain('PLAT-MOD-5004')
    expect(await running()).toBe('1.1.0')
    expect(answered(await admin.get(modulePath), 200)).toMatchObject({ version: '1.1.0', state: 'Running' })
    expect(await deploymentIds()).toEqual(before)
    expect(await inCatalog(admin, 'versioned')).toMatchObject({ installedVersion: '1.1.0', updateAvailable: true })
  })

  test('an older version is installed only where it is asked for by name', async () => {
    const job = await done(admin.post(`${modulePath}/install`, { version: '1.0.0' }))
    expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed' })
    expect(await running()).toBe('1.0.0')
  })

  test('it is installed by its image as well, with its manifest on the web', async () => {
    const { reference, digest, manifest } = await publish('2.0.0')
    const manifestUrl = author.serve('versioned.json', manifest)
    const asked = admin.post('/api/modules/install', { imageRef: reference, manifestUrl })
    const accepted = answered(await asked, 202)
    expect(accepted).toMatchObject({ moduleId: 'versioned', version: '2.0.0', imageDigest: digest, verified: true })
    expect(await over(api, accepted)).toMatchObject({ status: 'Completed' })
    expect(await running()).toBe('2.0.0')
  })

  test('it runs again after a restart although its registry is gone', async () => {
    await author.closeRegistry()
    await platform.stop()
    await platform.restart()
    await until('it answers again', async () => (await admin.get('/api/versioned')).status === 200)
    expect(await running()).toBe('2.0.0')
  })

  test('once it is uninstalled nothing of it is left', async () => {
    expect(await done(admin.delete('/api/modules/versioned'))).toMatchObject({ status: 'Completed' })
    answered(await admin.get('/api/versioned'), 404, 'route_not_found')
    expect([await entriesOf(admin, 'versioned'), await checksOf(api, 'versioned')]).toEqual([[], []])
    await nothingRemainsOf(platform)
  })
})
