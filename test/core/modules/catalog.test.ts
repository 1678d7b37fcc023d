import { CatalogItem, listCatalog } from '@platform/contract/catalog'
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
import { beforeEach, expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
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
import { advanceClock, minute } from '../support/notifications.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeEach(async () => {
  await removeAll(keys.catalog())
  await removeAll(keys.modules())
})

const unverified = { isVerified: false, reason: 'No trusted key has signed it.' }
const ids = async (filter = {}) => (await Catalog.list(filter)).items.map(({ id }) => id)

test('before the first scan the catalog is empty, and says that nobody has looked', async () => {
  expect(await Catalog.list({})).toEqual({ items: [], totalCount: 0, problems: [] })
})

test('an item is the newest release of a module, with what is installed of it', async () => {
  const createdAtMs = now()
  await putCatalog(
    { 'r.test/hello': [catalogRelease('hello', '1.10.0', { createdAtMs }), catalogRelease('hello', '1.9.0')] },
    ['r2 is away'],
  )
  const expected = {
    id: 'hello',
    name: 'hello',
    version: '1.10.0',
    description: 'A module under test.',
    verified: true,
    verifiedBy: 'tests',
    installed: false,
    updateAvailable: false,
    catalogSource: 'r.test/hello',
  }
  const listed = await Catalog.list({})
  expect(listed).toEqual({ items: [expected], totalCount: 1, scannedAt: expect.any(String), problems: ['r2 is away'] })
  expect(CatalogItem.parse(expected)).toEqual(expected)
  expect(listCatalog.responses[200].content['application/json'].schema.parse(listed)).toEqual(listed)
  await putModule(releaseFor('hello', { version: '1.9.0' }))
  const [item] = (await Catalog.list({})).items
  expect(item).toEqual({ ...expected, installed: true, installedVersion: '1.9.0', updateAvailable: true })
})

test.each([
  ['Installing', false],
  ['Running', true],
  ['Upgrading', true],
  ['Failed', true],
  ['Uninstalling', true],
] as const)('a module that is %s counts as installed: %s', async (state, installed) => {
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
])('%s is an update of %s: %s', async (version, installed, updateAvailable) => {
  await putCatalog({ 'r.test/hello': [catalogRelease('hello', version)] })
  await putModule(releaseFor('hello', { version: installed }))
  expect((await Catalog.list({})).items).toMatchObject([{ version, updateAvailable, installedVersion: installed }])
})

const offers = (...releases: (readonly [string, Partial<CatalogRelease>?, string?])[]) =>
  releases.map(([version, more = {}, reference = 'r.test/a']) =>
    Object.assign(catalogRelease('hello', version, more), { reference }),
  )

test.each([
  ['the newest', offers(['1.9.0'], ['1.10.0'], ['1.2.0']), '1.10.0'],
  ['a verified one before a newer other', offers(['2.0.0', unverified], ['1.0.0']), '1.0.0'],
  ['an unverified one where there is no other', offers(['1.0.0', unverified], ['2.0.0', unverified]), '2.0.0'],
  ['no prerelease where there is a stable one', offers(['2.0.0-rc.1'], ['1.0.0']), '1.0.0'],
  ['a prerelease where there is nothing else', offers(['1.0.0-rc.2'], ['1.0.0-rc.10']), '1.0.0-rc.10'],
  ['a verified prerelease before a stable other', offers(['1.0.0', unverified], ['0.9.0-rc.1']), '0.9.0-rc.1'],
  ['that of the first source', offers(['1.0.0'], ['2.0.0', {}, 'r.test/b']), '1.0.0'],
  ['that of the first source with a verified one', offers(['2.0.0', unverified], ['1.0.0', {}, 'r.test/b']), '1.0.0'],
])('of several releases %s is meant', (_, releases, version) => {
  expect(latestOf(releases)?.version).toBe(version)
  expect(latestOf(releases.toReversed().toSorted((a, b) => (a.reference < b.reference ? -1 : 1)))?.version).toBe(
    version,
  )
})

test('of the same version the verified one is meant, then what was made last', () => {
  const [older, newer] = [
    { digest: 'sha256:1', createdAtMs: 1 },
    { digest: 'sha256:2', createdAtMs: 2 },
  ]
  const signed = offers(['1.0.0', { ...older }], ['1.0.0', { ...newer, ...unverified }])
  expect(releaseOf(signed, '1.0.0')?.digest).toBe('sha256:1')
  expect(releaseOf(offers(['1.0.0', older], ['1.0.0', newer]), '1.0.0')?.digest).toBe('sha256:2')
  expect(releaseOf(signed, '1.0.1')).toBeUndefined()
  expect(latestOf([])).toBeUndefined()
})

test('a module that several sources have is one item, of the source that has it verified', async () => {
  await putCatalog({
    'r.test/z': [catalogRelease('hello', '3.0.0', unverified)],
    'r.test/y': [catalogRelease('hello', '1.0.0'), catalogRelease('other', '1.0.0', unverified)],
    'r.test/x': [catalogRelease('hello', '2.0.0')],
  })
  expect((await Catalog.list({})).items).toMatchObject([
    { id: 'hello', version: '1.0.0', verified: true, catalogSource: 'r.test/y' },
    { id: 'other', verified: false, unverifiedReason: 'No trusted key has signed it.' },
  ])
})

test('filters leave what they name, in any combination', async () => {
  await putCatalog({
    'r.test/a': [catalogRelease('alpha', '1.0.0', { name: 'Alpha Graphs', description: 'Draws ÄPFEL and pears.' })],
    'r.test/b': [catalogRelease('beta', '1.0.0', { name: 'Beta', description: 'Draws nothing.', ...unverified })],
    'r.test/c': [catalogRelease('gamma', '1.0.0', { name: 'Gamma', description: 'Counts graphs.' })],
  })
  await putModule(releaseFor('alpha'))
  await putModule(releaseFor('beta'))
  expect(await ids()).toEqual(['alpha', 'beta', 'gamma'])
  expect(await ids({ installed: 'true' })).toEqual(['alpha', 'beta'])
  expect(await ids({ installed: 'false' })).toEqual(['gamma'])
  expect(await ids({ verified: 'true' })).toEqual(['alpha', 'gamma'])
  expect(await ids({ verified: 'false' })).toEqual(['beta'])
  expect(await ids({ installed: 'true', verified: 'true' })).toEqual(['alpha'])
  expect(await ids({ search: 'GRAPH' })).toEqual(['alpha', 'gamma'])
  expect(await ids({ search: ' draws   alpha ' })).toEqual(['alpha'])
  expect(await ids({ search: 'a\u0308pfel' })).toEqual(['alpha'])
  expect(await ids({ search: 'draws counts' })).toEqual([])
  expect(await ids({ search: '  ' })).toEqual(['alpha', 'beta', 'gamma'])
  expect(await Catalog.list({ search: 'graph', installed: 'false' })).toMatchObject({ totalCount: 1 })
})

test('a scan replaces what an earlier one found, and what it does not find goes', async () => {
  await putCatalog({ 'r.test/a': [catalogRelease('alpha', '1.0.0')], 'r.test/b': [catalogRelease('beta', '1.0.0')] }, [
    'x',
  ])
  await putCatalog({ 'r.test/b': [catalogRelease('beta', '2.0.0')], 'r.test/c': [catalogRelease('gamma', '1.0.0')] })
  const { repositories, scan } = await readCatalog()
  expect(repositories.map(({ reference, releases }) => [reference, releases[0]?.version])).toEqual([
    ['r.test/b', '2.0.0'],
    ['r.test/c', '1.0.0'],
  ])
  expect(scan).toEqual({ scannedAtMs: expect.any(Number), problems: [] })
})

test('a repository with more and longer releases than an item holds keeps the newest', async () => {
  const many = Array.from({ length: 300 }, (_, index) => catalogRelease('hello', `1.${300 - index}.0`))
  await putCatalog({ 'r.test/many': many })
  expect((await readCatalog()).repositories[0]?.releases).toEqual(many.slice(0, releaseLimit))
  const long = Array.from({ length: 300 }, (_, index) =>
    catalogRelease('hello', `1.${300 - index}.0`, { description: '漢'.repeat(1000) }),
  )
  await putCatalog(
    { 'r.test/many': long },
    Array.from({ length: 60 }, () => 'p'.repeat(600)),
  )
  const { repositories, scan } = await readCatalog()
  const kept = repositories[0]?.releases ?? []
  expect(kept.length).toBeGreaterThan(100)
  expect(kept).toEqual(long.slice(0, kept.length))
  expect([scan?.problems.length, scan?.problems[0]?.length]).toEqual([50, 500])
})

test('asking for a scan sends a message, leaves an audit entry, and tells when the last one was', async () => {
  const caller = await newCaller(undefined, 'PlatformAdmin')
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
  expect(await Catalog.scan(caller)).toEqual({})
  await putCatalog({})
  const { scan } = await readCatalog()
  expect(await Catalog.scan(caller)).toEqual({ scannedAt: iso(scan?.scannedAtMs ?? 0) })
  const { organisationId } = caller
  const asked = { organisationId, scan: 'catalog' }
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([asked, asked])
  const [record] = await pendingRecords(organisationId)
  expect(record?.audit).toMatchObject({ action: 'catalog.scan', resource: 'catalog' })
})

test('the catalog takes two calls, asking for a scan two', async () => {
  await putCatalog(
    Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`r.test/r${index}`, [catalogRelease(`m${index}`, '1.0.0')]]),
    ),
  )
  expect(await countStoreCalls(() => Catalog.list({}))).toBe(2)
  const caller = await newCaller(undefined, 'PlatformAdmin')
  expect(await countStoreCalls(() => Catalog.scan(caller))).toBe(2)
})

test('an installed module tells what it is, how it is, and what keeps it apart', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id), { warnings: ['The slots differ.'] })
  await putHealth(id, 'Degraded', [storedCheck('one', { status: 'Degraded', tags: ['degradable'] })])
  const module = await Module.read(id)
  expect(module).toEqual({
    id,
    name: id,
    description: 'A module under test.',
    version: '1.0.0',
    state: 'Running',
    health: 'Degraded',
    checks: [
      {
        name: 'one',
        status: 'Degraded',
        tags: ['degradable'],
        description: 'Fine.',
        durationMs: 1,
        checkedAt: expect.any(String),
      },
    ],
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
  expect((await Module.list()).items).toContainEqual(module)
})

test('a module that is being installed has no health yet and names its job', async () => {
  const [id, jobId] = [newModuleId(), newId('job')]
  await putModule(releaseFor(id), { state: 'Installing', jobId })
  await putHealth(id, 'Healthy')
  const module = await Module.read(id)
  expect(module).toMatchObject({ state: 'Installing', health: 'Unknown', jobId })
  expect('installedAt' in module || 'isolation' in module).toBe(false)
})

test('a module that has failed is unhealthy, and says with which error', async () => {
  const id = newModuleId()
  const error = { code: 'PLAT-MOD-5008' as const, message: 'It crashed five times.', atMs: now() }
  await putModule(releaseFor(id, { isVerified: false }), { state: 'Failed', error })
  await putHealth(id, 'Healthy', [storedCheck('one')])
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    verified: false,
    lastError: { code: 'PLAT-MOD-5008', message: 'It crashed five times.', at: iso(error.atMs) },
  })
})

test('the health of a module that nobody has looked at for three ticks is unknown', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [] })
  await putHealth(id, 'Healthy', [storedCheck('one'), storedCheck('two')])
  advanceClock(3 * minute - 1000)
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy' })
  advanceClock(2000)
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [{ status: 'Healthy' }, {}] })
})

test('modules are listed by id', async () => {
  const ids = [newModuleId(), newModuleId(), newModuleId()]
  for (const id of ids) await putModule(releaseFor(id))
  const listed = (await Module.list()).items.map(({ id }) => id)
  expect(listed).toEqual(listed.toSorted())
  expect(listed).toEqual(expect.arrayContaining(ids))
})

test('a list and a module take one call each', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await countStoreCalls(() => Module.list())).toBe(1)
  expect(await countStoreCalls(() => Module.read(id))).toBe(1)
  expect(await countStoreCalls(() => Module.read('Not an id').catch(() => undefined))).toBe(0)
})
