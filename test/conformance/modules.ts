import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { answered, refusedFields } from './support/answer.ts'
import type { Client } from './support/client.ts'
import { catalogPath, checksOf, entriesOf, inCatalog, modulesPath, over } from './support/modules.ts'
import type { Journeys, Platform, Report } from './support/platform.ts'
import { until } from './support/until.ts'

const helloPath = `${modulesPath}/hello`
const imagePath = '/api/modules/install'
/** Codes that say: somebody else is at it. */
const busy = new Set(['module_operation_in_progress', 'module_already_installed', 'module_not_installed'])

/** Everything that a running `hello` shows of itself. */
async function expectHello(platform: Platform): Promise<void> {
  const admin = await platform.admin
  const { accessToken } = await platform.signIn()
  answered(await platform.anonymous.get('/api/hello'), 401, 'unauthenticated')
  const { message, moduleId, moduleVersion, timestamp } = answered(await admin.get('/api/hello'), 200)
  const module = answered(await admin.get(helloPath), 200)
  assert.deepEqual([moduleId, moduleVersion, module.state], ['hello', module.version, 'Running'])
  assert.ok(message.length > 0 && Math.abs(Date.parse(timestamp) - Date.now()) < 3_600_000, timestamp)

  const page = await platform.anonymous.withToken(accessToken).get('/modules/hello')
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(page.headers.get('content-security-policy') ?? '', /(?:^|;)\s*sandbox(?! [^;]*allow-same-origin)/)
  assert.equal(page.headers.get('set-cookie'), null)

  assert.deepEqual(
    (await entriesOf(admin, 'hello')).map(({ route }) => route),
    ['/modules/hello'],
  )
  const [check] = await until('the health page tells of it', async () => {
    const found = await checksOf(platform, 'hello')
    return found.length > 0 && found
  })
  assert.equal(check.name, 'hello-module')
}

/** Nothing leads to `hello`, whoever asks. */
async function expectNoHello(platform: Platform): Promise<void> {
  const admin = await platform.admin
  for (const client of [admin, platform.anonymous]) {
    for (const path of ['/api/hello', '/modules/hello']) answered(await client.get(path), 404, 'route_not_found')
  }
  answered(await admin.get(helloPath), 404, 'module_not_found')
  assert.deepEqual([await entriesOf(admin, 'hello'), await checksOf(platform, 'hello')], [[], []])
}

/** Installs what nobody has installed, looks at it, and takes it away again, whatever was found. */
async function installAndRemove(platform: Platform, admin: Client, report: Report): Promise<void> {
  const answer = await admin.post(`${helloPath}/install`, {})
  if (busy.has(answer.body?.error)) return report.skip('another run installs hello')
  const accepted = answered(answer, 202)
  try {
    const job = await over(platform, accepted)
    assert.equal(job.status, 'Completed', JSON.stringify(job))
    assert.ok(job.steps.length > 1 && job.steps.every(({ status }: any) => status === 'Completed'))
    assert.equal((await inCatalog(admin, 'hello')).installedVersion, accepted.version)
    answered(await admin.post(`${helloPath}/install`, {}), 409, 'module_already_installed')
    await expectHello(platform)
  } finally {
    const removal = await admin.delete(helloPath)
    if (!busy.has(removal.body?.error)) {
      assert.equal((await over(platform, answered(removal, 202))).status, 'Completed')
    }
  }
  await unlessShared(platform, report, undefined, () => expectNoHello(platform))
}

/** Several runs share one `hello`: what a run finds counts only where no other one has changed it meanwhile. */
async function unlessShared(
  { admin }: Platform,
  report: Report,
  state: 'Running' | undefined,
  look: () => Promise<void>,
): Promise<void> {
  try {
    await look()
  } catch (error) {
    if ((await (await admin).get(helloPath)).body?.state === state) throw error
    report.skip('another run changes hello')
  }
}

const navigation = async (reader: Client): Promise<any[]> =>
  answered(await reader.get('/api/v1/portal/navigation'), 200).items

const routes = (items: readonly any[]): string[] => items.map(({ route }) => route)

/** Registries that no caller may make the platform ask. */
const privateHosts = ['127.0.0.1:1', 'localhost:1', '10.0.0.1', '169.254.169.254', '[::1]:1', '192.168.0.1:5000']

export const modules: Journeys = {
  'hello is installed, answers, is shown, and is gone without a trace once it is uninstalled': async (
    platform,
    report,
  ) => {
    const admin = await platform.admin
    const item = await inCatalog(admin, 'hello')
    if (item === undefined) return report.skip('the catalog has no module hello')
    if (!item.verified) return report.skip('the module hello of the catalog is not verified')
    if (!item.installed) return installAndRemove(platform, admin, report)
    // It is somebody's: it is looked at, and left as it is.
    return unlessShared(platform, report, 'Running', () => expectHello(platform))
  },

  'the catalog shows what its filters ask for': async (platform) => {
    const admin = await platform.admin
    const list = async (query: string) => answered(await admin.get(`${catalogPath}?${query}`), 200)
    for (const verified of [true, false]) {
      const { items } = await list(`verified=${verified}`)
      assert.ok(items.every((item: any) => item.verified === verified))
    }
    for (const installed of [true, false]) {
      const { items } = await list(`installed=${installed}`)
      assert.ok(items.every((item: any) => item.installed === installed))
    }
    const all = await list('')
    assert.deepEqual(
      [all.totalCount, new Set(all.items.map(({ id }: any) => id)).size],
      Array(2).fill(all.items.length),
    )
    for (const { id, name } of all.items) {
      const { items } = await list(`search=${encodeURIComponent(` ${name.toUpperCase()} `)}`)
      assert.ok(
        items.some((item: any) => item.id === id),
        name,
      )
    }
    assert.deepEqual((await list('search=nothing-has-such-a-name')).items, [])
  },

  'the sources of the catalog are looked at when an administrator asks for it': async (platform) => {
    const admin = await platform.admin
    const { scannedAt } = answered(await admin.post(`${catalogPath}/scan`), 202)
    await until('the sources were looked at', async () => {
      const seenAt = answered(await admin.get(catalogPath), 200).scannedAt
      return seenAt !== undefined && seenAt !== scannedAt
    })
  },

  'fields that are wrong are named': async ({ admin }) => {
    const client = await admin
    for (const version of ['', '1', 'latest', '1.0.0 ', 7]) {
      assert.deepEqual(refusedFields(await client.post(`${helloPath}/install`, { version })), ['body /version'])
    }
    const wrong: [object, string][] = [
      [{}, 'body /imageRef'],
      [{ imageRef: '' }, 'body /imageRef'],
      [{ imageRef: 'x'.repeat(513) }, 'body /imageRef'],
      [{ imageRef: 'registry.example.com/x:1', manifestUrl: 'nowhere' }, 'body /manifestUrl'],
      [{ imageRef: 'registry.example.com/x:1', manifestUrl: 'file:///etc/passwd' }, 'body /manifestUrl'],
    ]
    for (const [body, field] of wrong) assert.deepEqual(refusedFields(await client.post(imagePath, body)), [field])
  },

  'a module that nobody knows is not found, a version that does not exist neither': async (platform) => {
    const admin = await platform.admin
    for (const id of ['nothing', 'catalog', 'x'.repeat(60), 'Hello', 'a b']) {
      const path = `${modulesPath}/${encodeURIComponent(id)}`
      answered(await admin.post(`${path}/install`, {}), 404)
      answered(await admin.delete(path), 404)
    }
    answered(await admin.delete('/api/modules/nothing'), 404, 'module_not_found')
    if ((await inCatalog(admin, 'hello')) === undefined) return
    const answer = await admin.post(`${helloPath}/install`, { version: '999.0.0' })
    if (answer.body?.error !== 'module_operation_in_progress') answered(answer, 422, 'version_not_available')
  },

  'a registry on a private address is not asked': async ({ admin }) => {
    for (const host of privateHosts) {
      answered(await (await admin).post(imagePath, { imageRef: `${host}/modules/x:1.0.0` }), 422, 'image_unreachable')
    }
  },

  'paths that are no module’s lead nowhere, with a token and without': async (platform) => {
    for (const client of [await platform.admin, platform.anonymous]) {
      for (const path of ['/api/nothing', '/api/v2/clusters', '/modules/nothing', '/modules/catalog', '/modules/']) {
        answered(await client.get(path), 404, 'route_not_found')
      }
    }
  },

  'the navigation is in order, and holds what its reader may use': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const [own, all] = [await navigation(client), await navigation(await platform.admin)]
    const orders = all.map(({ order }) => order)
    assert.deepEqual(
      orders,
      orders.toSorted((a, b) => a - b),
    )
    assert.ok(routes(own).includes('/clusters') && !routes(own).includes('/settings/users'))
    assert.ok(routes(all).includes('/settings/users'))
  },

  'the schema of module.json is published: JSON Schema that knows no key but its own': async ({ anonymous }) => {
    const schema = answered(await anonymous.get('/schemas/module/v1.json'), 200)
    assert.equal(schema.$schema, 'https://json-schema.org/draft/2020-12/schema')
    const ajv = new Ajv2020({ strict: false })
    formats.default(ajv)
    const isValid = ajv.compile(schema)
    const metadata = { id: 'x', name: 'X', version: '1.0.0', description: 'X.', author: 'X' }
    const spec = { sdkVersion: '*', image: 'r.example.com/x:1', apiBasePath: '/api/x', healthEndpoint: '/health' }
    assert.ok(isValid({ metadata, spec }), JSON.stringify(isValid.errors))
    const wrong = [{ metadata }, { metadata, spec, more: 1 }, { metadata, spec: { ...spec, apiBasePath: '/api/v1' } }]
    for (const manifest of wrong) assert.ok(!isValid(manifest), JSON.stringify(manifest))
  },
}
