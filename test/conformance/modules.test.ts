import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import {
  catalogPath,
  healthChecksOf,
  navigationEntriesOf,
  findCatalogItem,
  modulesPath,
  waitForJobEnd,
} from './support/modules.ts'
import type { Client } from './support/client.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const helloPath = `${modulesPath}/hello`

/** Errors of installations while another run installs or removes the module. */
const concurrencyErrors = new Set(['module_operation_in_progress', 'module_already_installed', 'module_not_installed'])

async function expectInstalled(platform: Platform): Promise<void> {
  const admin = await platform.admin
  const { accessToken } = await platform.signIn()
  expectStatus(await platform.anonymous.get('/api/hello'), 401, 'unauthenticated')
  const { message, moduleId, moduleVersion, timestamp } = expectStatus(await admin.get('/api/hello'), 200)
  const module = expectStatus(await admin.get(helloPath), 200)
  expect([moduleId, moduleVersion, module.state]).toEqual(['hello', module.version, 'Running'])
  expect(message.length, timestamp).toBeGreaterThan(0)

  const upgrade = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  expectStatus(await admin.get('/api/hello', upgrade), 501, 'upgrade_not_supported')
  const page = await platform.anonymous.withToken(accessToken).get('/modules/hello')
  expect(page.headers.get('content-type') ?? '').toMatch(/^text\/html/)
  expect(page.headers.get('content-security-policy') ?? '').toMatch(/(?:^|;)\s*sandbox(?! [^;]*allow-same-origin)/)
  expect(page.headers.get('set-cookie')).toBe(null)

  expect((await navigationEntriesOf(admin, 'hello')).map(({ route }) => route)).toEqual(['/modules/hello'])
  const [check] = await waitFor('the health check of the module', async () => {
    const checks = await healthChecksOf(platform, 'hello')
    return checks.length > 0 && checks
  })
  expect(check.name).toBe('hello-module')
}

async function expectConsent(admin: Client, declaredEvents: string[]): Promise<void> {
  const path = '/api/v1/organisation/modules'
  const findModule = async () => expectStatus(await admin.get(path), 200).items.find(({ id }: any) => id === 'hello')
  for (const [enabled, events] of [
    [true, declaredEvents],
    [false, []],
  ]) {
    const module = expectStatus(await admin.put(`${path}/hello`, { enabled }), 200)
    expect(module).toMatchObject({ enabled, events, declaredEvents })
    expect(await findModule()).toEqual(module)
  }
}

async function expectUninstalled(platform: Platform): Promise<void> {
  const admin = await platform.admin
  // Each process of the platform observes the removal within a second.
  for (const client of [admin, platform.anonymous])
    for (const path of ['/api/hello', '/modules/hello'])
      await waitFor(`route_not_found for ${path}`, async () => {
        const { status, body } = await client.get(path)
        return status === 404 && body?.error === 'route_not_found'
      })
  expectStatus(await admin.get(helloPath), 404, 'module_not_found')
  expect([await navigationEntriesOf(admin, 'hello'), await healthChecksOf(platform, 'hello')]).toEqual([[], []])
}

test('installs, runs, shows and completely removes hello', async ({ platform, admin, skip }) => {
  const item = await findCatalogItem(admin, 'hello')
  if (item?.verified !== true) return skip('the catalog has no verified module hello')
  // Another user installed the module: do not change it.
  if (item.installed) return expectInstalled(platform)
  const installation = await admin.post(`${helloPath}/install`, {})
  if (concurrencyErrors.has(installation.body?.error)) return skip('another run installs hello')
  const { version, ...accepted } = expectStatus(installation, 202)
  try {
    const job = await waitForJobEnd(platform, accepted)
    expect(job.status, JSON.stringify(job)).toBe('Completed')
    expect(job.steps.length).toBeGreaterThan(1)
    expect(job.steps.every(({ status }: any) => status === 'Completed')).toBe(true)
    expect((await findCatalogItem(admin, 'hello')).installedVersion).toBe(version)
    expectStatus(await admin.post(`${helloPath}/install`, {}), 409, 'module_already_installed')
    await expectInstalled(platform)
    await expectConsent(admin, accepted.events)
  } finally {
    const removal = expectStatus(await admin.delete(helloPath), 202)
    expect((await waitForJobEnd(platform, removal)).status).toBe('Completed')
  }
  await expectUninstalled(platform)
})

test('scans the catalog sources on request', async ({ admin }) => {
  const scan = await admin.post(`${catalogPath}/scan`)
  const { scannedAt } = expectStatus(scan, 202)
  await waitFor('the scan', async () => {
    const lastScanAt = expectStatus(await admin.get(catalogPath), 200).scannedAt
    return lastScanAt !== undefined && lastScanAt !== scannedAt
  })
  await waitFor('the audit entry of the scan', async () => {
    const { items } = expectStatus(await admin.get('/api/v1/platform/audit?action=catalog.scan'), 200)
    return items.some(({ traceId }: any) => traceId === scan.headers.get('x-trace-id'))
  })
})

test('returns 404 for an unknown module and 422 for an unknown version', async ({ admin }) => {
  for (const id of ['nothing', 'x'.repeat(60), 'Hello', 'a b']) {
    const path = `${modulesPath}/${encodeURIComponent(id)}`
    expectStatus(await admin.post(`${path}/install`, {}), 404)
    expectStatus(await admin.delete(path), 404)
  }
  expectStatus(await admin.delete('/api/modules/nothing'), 404, 'module_not_found')
  if ((await findCatalogItem(admin, 'hello')) === undefined) return
  const response = await admin.post(`${helloPath}/install`, { version: '999.0.0' })
  if (response.body?.error !== 'module_operation_in_progress') expectStatus(response, 422, 'version_not_available')
})

test('returns 404 for paths of no module', async ({ platform }) => {
  for (const client of [await platform.admin, platform.anonymous]) {
    for (const path of ['/api/nothing', '/api/v2/clusters', '/modules/nothing', '/modules/catalog', '/modules/']) {
      expectStatus(await client.get(path), 404, 'route_not_found')
    }
  }
})
