import { expect } from 'vitest'
import { test } from './support/test.ts'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Client } from './support/client.ts'
import { catalogPath, checksOf, entriesOf, inCatalog, modulesPath, over } from './support/modules.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const helloPath = `${modulesPath}/hello`
const imagePath = '/api/modules/install'
/** Errors caused by a concurrent run. */
const busy = new Set(['module_operation_in_progress', 'module_already_installed', 'module_not_installed'])

/** All visible effects of a running `hello`. */
async function expectHello(platform: Platform): Promise<void> {
  const admin = await platform.admin
  const { accessToken } = await platform.signIn()
  expectStatus(await platform.anonymous.get('/api/hello'), 401, 'unauthenticated')
  const { message, moduleId, moduleVersion, timestamp } = expectStatus(await admin.get('/api/hello'), 200)
  const module = expectStatus(await admin.get(helloPath), 200)
  expect([moduleId, moduleVersion, module.state]).toEqual(['hello', module.version, 'Running'])
  expect(message.length, timestamp).toBeGreaterThan(0)
  expect(Math.abs(Date.parse(timestamp) - Date.now()), timestamp).toBeLessThan(3_600_000)

  const page = await platform.anonymous.withToken(accessToken).get('/modules/hello')
  expect(page.headers.get('content-type') ?? '').toMatch(/^text\/html/)
  expect(page.headers.get('content-security-policy') ?? '').toMatch(/(?:^|;)\s*sandbox(?! [^;]*allow-same-origin)/)
  expect(page.headers.get('set-cookie')).toBe(null)

  expect((await entriesOf(admin, 'hello')).map(({ route }) => route)).toEqual(['/modules/hello'])
  const [check] = await waitFor('the health page tells of it', async () => {
    const found = await checksOf(platform, 'hello')
    return found.length > 0 && found
  })
  expect(check.name).toBe('hello-module')
}

async function expectNoHello(platform: Platform): Promise<void> {
  const admin = await platform.admin
  for (const client of [admin, platform.anonymous]) {
    for (const path of ['/api/hello', '/modules/hello']) expectStatus(await client.get(path), 404, 'route_not_found')
  }
  expectStatus(await admin.get(helloPath), 404, 'module_not_found')
  expect([await entriesOf(admin, 'hello'), await checksOf(platform, 'hello')]).toEqual([[], []])
}

/** Installs a module that is not installed, runs the checks and uninstalls it in any case. */
async function installAndRemove(platform: Platform, admin: Client, skip: (reason: string) => void): Promise<void> {
  const answer = await admin.post(`${helloPath}/install`, {})
  if (busy.has(answer.body?.error)) return skip('another run installs hello')
  const accepted = expectStatus(answer, 202)
  try {
    const job = await over(platform, accepted)
    expect(job.status, JSON.stringify(job)).toBe('Completed')
    expect(job.steps.length).toBeGreaterThan(1)
    expect(job.steps.every(({ status }: any) => status === 'Completed')).toBe(true)
    expect((await inCatalog(admin, 'hello')).installedVersion).toBe(accepted.version)
    expectStatus(await admin.post(`${helloPath}/install`, {}), 409, 'module_already_installed')
    await expectHello(platform)
  } finally {
    const removal = await admin.delete(helloPath)
    if (!busy.has(removal.body?.error)) {
      expect((await over(platform, expectStatus(removal, 202))).status).toBe('Completed')
    }
  }
  await unlessShared(platform, skip, undefined, () => expectNoHello(platform))
}

/** Runs share one `hello`: results count only if no other run changed it during the check. */
async function unlessShared(
  { admin }: Platform,
  skip: (reason: string) => void,
  state: 'Running' | undefined,
  look: () => Promise<void>,
): Promise<void> {
  try {
    await look()
  } catch (error) {
    if ((await (await admin).get(helloPath)).body?.state === state) throw error
    skip('another run changes hello')
  }
}

const navigation = async (reader: Client): Promise<any[]> =>
  expectStatus(await reader.get('/api/v1/portal/navigation'), 200).items

const routes = (items: readonly any[]): string[] => items.map(({ route }) => route)

/** Registries that callers must not reach. */
const privateHosts = ['127.0.0.1:1', 'localhost:1', '10.0.0.1', '169.254.169.254', '[::1]:1', '192.168.0.1:5000']

test('installs, runs, shows and completely removes hello', async ({ platform, admin, skip }) => {
  const item = await inCatalog(admin, 'hello')
  if (item === undefined) return skip('the catalog has no module hello')
  if (!item.verified) return skip('the module hello of the catalog is not verified')
  if (!item.installed) return installAndRemove(platform, admin, skip)
  // Another user installed it: do not change it.
  return unlessShared(platform, skip, 'Running', () => expectHello(platform))
})

test('filters the catalog', async ({ admin }) => {
  const list = async (query: string) => expectStatus(await admin.get(`${catalogPath}?${query}`), 200)
  for (const verified of [true, false]) {
    const { items } = await list(`verified=${verified}`)
    expect(items.every((item: any) => item.verified === verified)).toBe(true)
  }
  for (const installed of [true, false]) {
    const { items } = await list(`installed=${installed}`)
    expect(items.every((item: any) => item.installed === installed)).toBe(true)
  }
  const all = await list('')
  expect([all.totalCount, new Set(all.items.map(({ id }: any) => id)).size]).toEqual(Array(2).fill(all.items.length))
  for (const { id, name } of all.items) {
    const { items } = await list(`search=${encodeURIComponent(` ${name.toUpperCase()} `)}`)
    expect(
      items.some((item: any) => item.id === id),
      name,
    ).toBe(true)
  }
  expect((await list('search=nothing-has-such-a-name')).items).toEqual([])
})

test('scans the catalog sources on request', async ({ admin }) => {
  const scan = await admin.post(`${catalogPath}/scan`)
  const { scannedAt } = expectStatus(scan, 202)
  await waitFor('the sources were looked at', async () => {
    const seenAt = expectStatus(await admin.get(catalogPath), 200).scannedAt
    return seenAt !== undefined && seenAt !== scannedAt
  })
  await waitFor('the scan to be recorded', async () => {
    const { items } = expectStatus(await admin.get('/api/v1/platform/audit?action=catalog.scan'), 200)
    return items.some(({ traceId }: any) => traceId === scan.headers.get('x-trace-id'))
  })
})

test('names invalid fields', async ({ admin: client }) => {
  for (const version of ['', '1', 'latest', '1.0.0 ', 7]) {
    expect(invalidFields(await client.post(`${helloPath}/install`, { version }))).toEqual(['body /version'])
  }
  const wrong: [object, string][] = [
    [{}, 'body /imageRef'],
    [{ imageRef: '' }, 'body /imageRef'],
    [{ imageRef: 'x'.repeat(513) }, 'body /imageRef'],
    [{ imageRef: 'registry.example.com/x:1', manifestUrl: 'nowhere' }, 'body /manifestUrl'],
    [{ imageRef: 'registry.example.com/x:1', manifestUrl: 'file:///etc/passwd' }, 'body /manifestUrl'],
  ]
  for (const [body, field] of wrong) expect(invalidFields(await client.post(imagePath, body))).toEqual([field])
})

test('returns 404 for an unknown module and 422 for an unknown version', async ({ admin }) => {
  for (const id of ['nothing', 'catalog', 'x'.repeat(60), 'Hello', 'a b']) {
    const path = `${modulesPath}/${encodeURIComponent(id)}`
    expectStatus(await admin.post(`${path}/install`, {}), 404)
    expectStatus(await admin.delete(path), 404)
  }
  expectStatus(await admin.delete('/api/modules/nothing'), 404, 'module_not_found')
  if ((await inCatalog(admin, 'hello')) === undefined) return
  const answer = await admin.post(`${helloPath}/install`, { version: '999.0.0' })
  if (answer.body?.error !== 'module_operation_in_progress') expectStatus(answer, 422, 'version_not_available')
})

test('does not contact a registry on a private address', async ({ admin }) => {
  for (const host of privateHosts) {
    expectStatus(await admin.post(imagePath, { imageRef: `${host}/modules/x:1.0.0` }), 422, 'image_unreachable')
  }
})

test('returns 404 for paths of no module', async ({ platform }) => {
  for (const client of [await platform.admin, platform.anonymous]) {
    for (const path of ['/api/nothing', '/api/v2/clusters', '/modules/nothing', '/modules/catalog', '/modules/']) {
      expectStatus(await client.get(path), 404, 'route_not_found')
    }
  }
})

test('orders the navigation and limits it to the permissions of the reader', async ({ platform, admin }) => {
  const { client } = await platform.newPerson('Viewer')
  const [own, all] = [await navigation(client), await navigation(admin)]
  const orders = all.map(({ order }) => order)
  expect(orders).toEqual(orders.toSorted((a, b) => a - b))
  expect(routes(own)).toContain('/clusters')
  expect(routes(own)).not.toContain('/settings/users')
  expect(routes(all)).toContain('/settings/users')
})

test('publishes a closed JSON Schema of module.json', async ({ anonymous }) => {
  const schema = expectStatus(await anonymous.get('/schemas/module/v1.json'), 200)
  expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
  const ajv = new Ajv2020({ strict: false })
  formats.default(ajv)
  const isValid = ajv.compile(schema)
  const metadata = { id: 'x', name: 'X', version: '1.0.0', description: 'X.', author: 'X' }
  const spec = { sdkVersion: '*', image: 'r.example.com/x:1', apiBasePath: '/api/x', healthEndpoint: '/health' }
  expect(isValid({ metadata, spec }), JSON.stringify(isValid.errors)).toBe(true)
  const wrong = [{ metadata }, { metadata, spec, more: 1 }, { metadata, spec: { ...spec, apiBasePath: '/api/v1' } }]
  for (const manifest of wrong) expect(isValid(manifest), JSON.stringify(manifest)).toBe(false)
})
