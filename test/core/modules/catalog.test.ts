import { CatalogItem, listCatalog } from '@platform/contract/catalog'
import { Readiness } from '@platform/contract/health'
import { Module as ModuleSchema } from '@platform/contract/module'
import { iso, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { readCatalog, releaseLimit } from '@platform/core/modules/catalog/catalog'
import * as Catalog from '@platform/core/modules/catalog/list'
import type { CatalogRelease } from '@platform/core/modules/catalog/record'
import { latestOf, releaseOf } from '@platform/core/modules/catalog/select'
import * as Module from '@platform/core/modules/module'
import type { ModuleHealthRecord, StoredCheck } from '@platform/core/modules/record'
import * as Health from '@platform/core/platform/health'
import { checkWrites } from '@platform/core/platform/write-check'
import { beforeEach, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, newCaller } from '../../support/fixtures.ts'
import { failCommands } from '../support/interleaving.ts'
import { receiveMessages } from '../support/messages.ts'
import {
  catalogRelease,
  newModuleId,
  putCatalog,
  putHealth,
  putModule,
  releaseFor,
  storedCheck,
} from '../support/modules.ts'
import { minuteMs } from '../support/notifications.ts'
import { readPendingRecords } from '../support/outbox.ts'

beforeEach(async () => {
  await removeAll(keys.catalog())
  await removeAll(keys.modules())
})

const checkReady = async () => {
  await checkWrites()
  return Health.ready()
}

const unverifiedState = { isVerified: false, reason: 'No trusted key has signed it.' }

test('is empty before the first scan', async () => {
  expect(await Catalog.list({})).toEqual({ items: [], totalCount: 0, problems: [] })
})

test('lists the newest release of a module with the installed version', async () => {
  const events = ['platform.user.created']
  const newestRelease = catalogRelease('hello', '1.10.0', { createdAtMs: now(), events })
  await putCatalog({ 'r.test/hello': [newestRelease, catalogRelease('hello', '1.9.0')] }, ['r2 is unreachable'])
  const item = {
    id: 'hello',
    name: 'hello',
    version: '1.10.0',
    description: 'A module under test.',
    events,
    verified: true,
    verifiedBy: 'tests',
    installed: false,
    updateAvailable: false,
    catalogSource: 'r.test/hello',
  }
  const list = await Catalog.list({})
  const scan = { scannedAt: expect.any(String), problems: ['r2 is unreachable'] }
  expect(list).toEqual({ items: [item], totalCount: 1, ...scan })
  expect(CatalogItem.parse(item)).toEqual(item)
  expect(listCatalog.responses[200].content['application/json'].schema.parse(list)).toEqual(list)
  await putModule(releaseFor('hello', { version: '1.9.0' }))
  const installedState = { installed: true, installedVersion: '1.9.0', updateAvailable: true }
  expect((await Catalog.list({})).items).toEqual([{ ...item, ...installedState }])
})

test.each([
  ['Installing', false],
  ['Running', true],
  ['Upgrading', true],
  ['Failed', true],
  ['Uninstalling', true],
] as const)('lists a module in state %s with installed: %s', async (state, installed) => {
  await putCatalog({ 'r.test/hello': [catalogRelease('hello', '1.0.0')] })
  await putModule(releaseFor('hello'), { state })
  expect((await Catalog.list({})).items).toMatchObject([{ installed }])
})

test.each([
  ['1.0.0', '1.0.0', false],
  ['1.0.1', '1.0.0', true],
  ['0.9.0', '1.0.0', false],
  ['1.10.0', '1.9.0', true],
  ['1.0.0+build.2', '1.0.0+build.1', false],
  ['1.0.0', '1.0.0-rc.1', true],
  ['1.0.0-rc.1', '1.0.0', false],
  ['1.0.0-rc.10', '1.0.0-rc.9', true],
])('offers %s as an update of %s: %s', async (version, installed, updateAvailable) => {
  await putCatalog({ 'r.test/hello': [catalogRelease('hello', version)] })
  await putModule(releaseFor('hello', { version: installed }))
  expect((await Catalog.list({})).items).toMatchObject([{ version, updateAvailable, installedVersion: installed }])
})

const choices = (...releases: (readonly [string, Partial<CatalogRelease>?, string?])[]) =>
  releases.map(([version, overrides = {}, reference = 'r.test/a']) =>
    Object.assign(catalogRelease('hello', version, overrides), { reference }),
  )

test.each([
  ['the newest', choices(['1.9.0'], ['1.10.0'], ['1.2.0']), '1.10.0'],
  ['a verified one', choices(['2.0.0', unverifiedState], ['1.0.0']), '1.0.0'],
  ['the newest if none is verified', choices(['1.0.0', unverifiedState], ['2.0.0', unverifiedState]), '2.0.0'],
  ['a stable one', choices(['2.0.0-rc.1'], ['1.0.0']), '1.0.0'],
  ['a prerelease if none is stable', choices(['1.0.0-rc.2'], ['1.0.0-rc.10']), '1.0.0-rc.10'],
  ['a verified prerelease', choices(['1.0.0', unverifiedState], ['0.9.0-rc.1']), '0.9.0-rc.1'],
  ['one of the first source', choices(['1.0.0'], ['2.0.0', {}, 'r.test/b']), '1.0.0'],
  [
    'one of the first source with a verified one',
    choices(['2.0.0', unverifiedState], ['1.0.0', {}, 'r.test/b']),
    '1.0.0',
  ],
])('selects %s of several releases', (_, releases, version) => {
  expect(latestOf(releases)?.version).toBe(version)
  const reorderedReleases = releases.toReversed().toSorted((a, b) => (a.reference < b.reference ? -1 : 1))
  expect(latestOf(reorderedReleases)?.version).toBe(version)
})

test('selects the verified release of a version, then the latest build', () => {
  const [olderRelease, newerRelease] = [
    { digest: 'sha256:1', createdAtMs: 1 },
    { digest: 'sha256:2', createdAtMs: 2 },
  ]
  const signedChoices = choices(['1.0.0', { ...olderRelease }], ['1.0.0', { ...newerRelease, ...unverifiedState }])
  expect(releaseOf(signedChoices, '1.0.0')?.digest).toBe('sha256:1')
  expect(releaseOf(choices(['1.0.0', olderRelease], ['1.0.0', newerRelease]), '1.0.0')?.digest).toBe('sha256:2')
  expect(releaseOf(signedChoices, '1.0.1')).toBeUndefined()
  expect(latestOf([])).toBeUndefined()
})

test('lists a module of several sources once, from the first source with a verified release', async () => {
  await putCatalog({
    'r.test/z': [catalogRelease('hello', '3.0.0', unverifiedState)],
    'r.test/y': [catalogRelease('hello', '1.0.0'), catalogRelease('other', '1.0.0', unverifiedState)],
    'r.test/x': [catalogRelease('hello', '2.0.0')],
  })
  expect((await Catalog.list({})).items).toMatchObject([
    { id: 'hello', version: '1.0.0', verified: true, catalogSource: 'r.test/y' },
    { id: 'other', verified: false, unverifiedReason: 'No trusted key has signed it.' },
  ])
})

test('combines filters', async () => {
  await putCatalog({
    'r.test/a': [catalogRelease('alpha', '1.0.0', { name: 'Alpha Graphs', description: 'Draws ÄPFEL and pears.' })],
    'r.test/b': [catalogRelease('beta', '1.0.0', { name: 'Beta', description: 'Draws nothing.', ...unverifiedState })],
    'r.test/c': [catalogRelease('gamma', '1.0.0', { name: 'Gamma', description: 'Counts graphs.' })],
  })
  await putModule(releaseFor('alpha'))
  await putModule(releaseFor('beta'))
  const cases: [Parameters<typeof Catalog.list>[0], string][] = [
    [{}, 'alpha beta gamma'],
    [{ installed: 'true' }, 'alpha beta'],
    [{ installed: 'false' }, 'gamma'],
    [{ verified: 'true' }, 'alpha gamma'],
    [{ verified: 'false' }, 'beta'],
    [{ installed: 'true', verified: 'true' }, 'alpha'],
    [{ search: 'GRAPH' }, 'alpha gamma'],
    [{ search: ' draws   alpha ' }, 'alpha'],
    [{ search: 'a\u0308pfel' }, 'alpha'],
    [{ search: 'draws counts' }, ''],
    [{ search: '  ' }, 'alpha beta gamma'],
  ]
  for (const [filter, ids] of cases) {
    expect([filter, (await Catalog.list(filter)).items.map(({ id }) => id).join(' ')]).toEqual([filter, ids])
  }
  expect(await Catalog.list({ search: 'graph', installed: 'false' })).toMatchObject({ totalCount: 1 })
})

test('replaces the result of an earlier scan', async () => {
  const beta = (version: string) => ({ 'r.test/b': [catalogRelease('beta', version)] })
  await putCatalog({ 'r.test/a': [catalogRelease('alpha', '1.0.0')], ...beta('1.0.0') }, ['x'])
  await putCatalog({ ...beta('2.0.0'), 'r.test/c': [catalogRelease('gamma', '1.0.0')] })
  const { repositories, scan } = await readCatalog()
  expect(repositories.map(({ reference, releases }) => [reference, releases[0]?.version])).toEqual([
    ['r.test/b', '2.0.0'],
    ['r.test/c', '1.0.0'],
  ])
  expect(scan).toEqual({ scannedAtMs: expect.any(Number), problems: [] })
})

test('stores the newest releases of a repository up to count and size limits', async () => {
  const releases = (overrides = {}) =>
    Array.from({ length: 300 }, (_, index) => catalogRelease('hello', `1.${300 - index}.0`, overrides))
  await putCatalog({ 'r.test/many': releases() })
  expect((await readCatalog()).repositories[0]?.releases).toEqual(releases().slice(0, releaseLimit))
  const longReleases = releases({ description: '漢'.repeat(1000) })
  await putCatalog({ 'r.test/many': longReleases }, Array<string>(60).fill('p'.repeat(600)))
  const { repositories, scan } = await readCatalog()
  const storedReleases = repositories[0]?.releases ?? []
  expect(storedReleases.length).toBeGreaterThan(100)
  expect(storedReleases).toEqual(longReleases.slice(0, storedReleases.length))
  expect([scan?.problems.length, scan?.problems[0]?.length]).toEqual([50, 500])
})

test('queues a scan, audits the request and returns the time of the last scan', async () => {
  const caller = await newCaller(undefined, 'PlatformAdmin')
  await receiveMessages(config.PLAT_QUEUE_INSTALLS)
  expect(await Catalog.scan(caller)).toEqual({})
  await putCatalog({})
  const { scan } = await readCatalog()
  expect(await Catalog.scan(caller)).toEqual({ scannedAt: iso(scan?.scannedAtMs ?? 0) })
  const { organisationId } = caller
  const message = { organisationId, scan: 'catalog' }
  expect(await receiveMessages(config.PLAT_QUEUE_INSTALLS)).toEqual([message, message])
  const [record] = await readPendingRecords(organisationId)
  expect(record?.audit).toMatchObject({ action: 'catalog.scan', resource: 'catalog' })
})

await bootstrapPlatform()

type Health = ModuleHealthRecord['health']

async function checkedModule(checks: StoredCheck[], health: Health = 'Healthy', state?: 'Failed' | 'Uninstalling') {
  const id = newModuleId()
  await putModule(releaseFor(id), state && { state })
  await putHealth(id, health, checks)
  return id
}
const moduleError = { code: 'PLAT-MOD-5008', message: 'It crashed: secret.', atMs: now() } as const

test('shows an installed module with its checks', async () => {
  const [id, otherId] = [newModuleId(), newModuleId()]
  await putModule(releaseFor(otherId))
  await putModule(releaseFor(id), { warnings: ['The slots differ.'] })
  await putHealth(id, 'Degraded', [storedCheck('one', { status: 'Degraded', tags: ['degradable'] })])
  const module = await Module.read(id)
  const check = { name: 'one', status: 'Degraded', tags: ['degradable'], description: 'Fine.', durationMs: 1 }
  expect(module).toEqual({
    id,
    name: id,
    description: 'A module under test.',
    version: '1.0.0',
    state: 'Running',
    health: 'Degraded',
    checks: [{ ...check, checkedAt: expect.any(String) }],
    verified: true,
    verifiedBy: 'tests',
    image: `registry.example.com/modules/${id}@sha256:${'0'.repeat(64)}`,
    isolation: 'a process of its own',
    apiBasePath: `/api/${id}`,
    warnings: ['The slots differ.'],
    installedAt: expect.any(String),
    updatedAt: expect.any(String),
  })
  expect(ModuleSchema.parse(module)).toEqual(module)
  const { items } = await Module.list()
  expect(items).toContainEqual(module)
  expect(items.map((item) => item.id)).toEqual([id, otherId].toSorted())
})

test('shows a module being installed with its job and without health', async () => {
  const [id, jobId] = [newModuleId(), newId('job')]
  await putModule(releaseFor(id), { state: 'Installing', jobId })
  await putHealth(id, 'Healthy')
  const module = await Module.read(id)
  expect(module).toMatchObject({ state: 'Installing', health: 'Unknown', jobId })
  expect('installedAt' in module || 'isolation' in module).toBe(false)
})

test('adds checks of modules to the readiness of the platform', async () => {
  const id = await checkedModule([storedCheck('hello-module')])
  const { ready: isReady, body } = await checkReady()
  expect([isReady, body.status, body.aggregate]).toEqual([true, 'ok', 'Healthy'])
  expect(body.checks).toHaveLength(3)
  expect(body.checks).toContainEqual({
    name: 'hello-module',
    status: 'Healthy',
    tags: ['informational'],
    source: `module:${id}`,
    durationMs: 1,
    checkedAt: expect.any(String),
    description: 'Fine.',
  })
  expect(Readiness.parse(body)).toEqual(body)
})

test.each([
  ['critical', 'Unhealthy', false, 'Unhealthy'],
  ['critical', 'Degraded', true, 'Degraded'],
  ['degradable', 'Unhealthy', true, 'Degraded'],
  ['degradable', 'Degraded', true, 'Degraded'],
  ['informational', 'Unhealthy', true, 'Healthy'],
  ['', 'Unhealthy', true, 'Degraded'],
  ['informational critical', 'Unhealthy', false, 'Unhealthy'],
  ['informational critical', 'Degraded', true, 'Degraded'],
  ['informational degradable', 'Unhealthy', true, 'Degraded'],
] as const)('aggregates a check tagged %j that is %s to ready %s and %s', async (tags, status, isReady, aggregate) => {
  const badTags = tags.split(' ').filter(Boolean) as StoredCheck['tags']
  await checkedModule([storedCheck('good', { tags: ['critical'] }), storedCheck('bad', { status, tags: badTags })])
  const readiness = { ready: isReady, body: { status: isReady ? 'ok' : 'unavailable', aggregate } }
  expect(await checkReady()).toMatchObject(readiness)
})

test('treats results older than three intervals as outdated', async () => {
  const checkedAtMs = now()
  const longFailure = { status: 'Unhealthy', description: 'x'.repeat(500) } as const
  const id = await checkedModule([
    storedCheck('good', { tags: ['critical'], checkedAtMs }),
    storedCheck('bad', { tags: ['informational'], ...longFailure, checkedAtMs }),
  ])
  advanceClock(3 * minuteMs - 1000)
  expect((await checkReady()).body.aggregate).toBe('Healthy')
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy' })
  advanceClock(2000)
  const { body } = await checkReady()
  expect(body.aggregate).toBe('Degraded')
  expect(body.checks.slice(2)).toMatchObject([
    { status: 'Degraded', description: `Not checked since ${iso(checkedAtMs)}. Fine.` },
    { status: 'Unhealthy', description: expect.stringMatching(/^Not checked since .*x{400,}$/) },
  ])
  expect(Readiness.parse(body)).toEqual(body)
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [{ status: 'Healthy' }, {}] })
})

test('ignores a module being uninstalled but not a failed one', async () => {
  const failedCheck = storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })
  await checkedModule([failedCheck], 'Unhealthy', 'Uninstalling')
  expect(await checkReady()).toMatchObject({
    ready: true,
    body: { checks: [{ name: 'database' }, { name: 'database-writes' }] },
  })
  await checkedModule([failedCheck], 'Unhealthy', 'Failed')
  expect(await checkReady()).toMatchObject({ ready: false, body: { status: 'unavailable' } })
})

test('reports a failed module as unhealthy, regardless of its last check', async () => {
  const id = await checkedModule([storedCheck('good', { tags: ['critical'] })])
  await putModule(releaseFor(id, { isVerified: false }), { state: 'Failed', error: moduleError })
  for (const elapsedMs of [0, 10 * minuteMs]) {
    advanceClock(elapsedMs)
    const description = expect.stringMatching(/It has failed: PLAT-MOD-5008\.$/)
    const checks = [
      { name: 'database' },
      { name: 'database-writes' },
      { name: 'good', status: 'Unhealthy', description },
    ]
    expect(await checkReady()).toMatchObject({ ready: false, body: { aggregate: 'Unhealthy', checks } })
  }
  const { code, message, atMs } = moduleError
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    verified: false,
    checks: [{ name: 'good', status: 'Unhealthy' }],
    lastError: { code, message, at: iso(atMs) },
  })
})

test('reports a failed module without checks as one degradable check if it has ever run', async () => {
  await putModule(releaseFor(newModuleId()), { state: 'Failed', error: moduleError })
  expect((await checkReady()).body).toMatchObject({
    aggregate: 'Healthy',
    checks: [{ name: 'database' }, { name: 'database-writes' }],
  })
  const id = await checkedModule([])
  await putModule(releaseFor(id), { state: 'Failed', error: moduleError })
  const check = { name: 'health', source: `module:${id}`, status: 'Unhealthy', tags: ['degradable'] }
  expect(await checkReady()).toMatchObject({ ready: true, body: { aggregate: 'Degraded', checks: [{}, {}, check] } })
})

test('reports the database as healthy if modules cannot be read', async () => {
  await checkedModule([storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })])
  using _ = failCommands(/^Query/)
  const checks = [{ name: 'database', status: 'Healthy' }, { name: 'database-writes' }]
  expect((await checkReady()).body).toMatchObject({ status: 'ok', checks })
})
