import { beforeEach, expect, test } from 'vitest'
import { CatalogItem, listCatalog } from '@platform/contract/catalog'
import { readCatalog, releaseLimit } from '@platform/core/modules/catalog/catalog'
import { type CatalogRelease } from '@platform/core/modules/catalog/record'
import { latestOf, releaseOf } from '@platform/core/modules/catalog/select'
import * as Catalog from '@platform/core/modules/catalog/list'
import { iso, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/remove-all'
import { callsOf } from '../../support/store-calls.ts'
import { callerOf } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { takeMessages } from '../support/messages.ts'
import { found, putCatalog, putModule, releaseFor } from '../support/modules.ts'

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
  await putCatalog({ 'r.test/hello': [found('hello', '1.10.0', { createdAtMs }), found('hello', '1.9.0')] }, [
    'r2 is away',
  ])
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
  expect(listCatalog.responses[200].schema.parse(listed)).toEqual(listed)
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
  await putCatalog({ 'r.test/hello': [found('hello', '1.0.0')] })
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
  await putCatalog({ 'r.test/hello': [found('hello', version)] })
  await putModule(releaseFor('hello', { version: installed }))
  expect((await Catalog.list({})).items).toMatchObject([{ version, updateAvailable, installedVersion: installed }])
})

const offers = (...releases: (readonly [string, Partial<CatalogRelease>?, string?])[]) =>
  releases.map(([version, more = {}, reference = 'r.test/a']) =>
    Object.assign(found('hello', version, more), { reference }),
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
    'r.test/z': [found('hello', '3.0.0', unverified)],
    'r.test/y': [found('hello', '1.0.0'), found('other', '1.0.0', unverified)],
    'r.test/x': [found('hello', '2.0.0')],
  })
  expect((await Catalog.list({})).items).toMatchObject([
    { id: 'hello', version: '1.0.0', verified: true, catalogSource: 'r.test/y' },
    { id: 'other', verified: false, unverifiedReason: 'No trusted key has signed it.' },
  ])
})

test('filters leave what they name, in any combination', async () => {
  await putCatalog({
    'r.test/a': [found('alpha', '1.0.0', { name: 'Alpha Graphs', description: 'Draws ÄPFEL and pears.' })],
    'r.test/b': [found('beta', '1.0.0', { name: 'Beta', description: 'Draws nothing.', ...unverified })],
    'r.test/c': [found('gamma', '1.0.0', { name: 'Gamma', description: 'Counts graphs.' })],
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
  await putCatalog({ 'r.test/a': [found('alpha', '1.0.0')], 'r.test/b': [found('beta', '1.0.0')] }, ['x'])
  await putCatalog({ 'r.test/b': [found('beta', '2.0.0')], 'r.test/c': [found('gamma', '1.0.0')] })
  const { repositories, scan } = await readCatalog()
  expect(repositories.map(({ reference, releases }) => [reference, releases[0]?.version])).toEqual([
    ['r.test/b', '2.0.0'],
    ['r.test/c', '1.0.0'],
  ])
  expect(scan).toEqual({ scannedAtMs: expect.any(Number), problems: [] })
})

test('a repository with more and longer releases than an item holds keeps the newest', async () => {
  const many = Array.from({ length: 300 }, (_, index) => found('hello', `1.${300 - index}.0`))
  await putCatalog({ 'r.test/many': many })
  expect((await readCatalog()).repositories[0]?.releases).toEqual(many.slice(0, releaseLimit))
  const long = Array.from({ length: 300 }, (_, index) =>
    found('hello', `1.${300 - index}.0`, { description: '漢'.repeat(1000) }),
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
  const caller = await callerOf(undefined, 'PlatformAdmin')
  await takeMessages(config.PLAT_QUEUE_UPDATES)
  expect(await Catalog.scan(caller)).toEqual({})
  await putCatalog({})
  const { scan } = await readCatalog()
  expect(await Catalog.scan(caller)).toEqual({ scannedAt: iso(scan?.scannedAtMs ?? 0) })
  const { organisationId } = caller
  const asked = { organisationId, scan: 'catalog' }
  expect(await takeMessages(config.PLAT_QUEUE_UPDATES)).toEqual([asked, asked])
  const [record] = await waitingRecords(organisationId)
  expect(record?.audit).toMatchObject({ action: 'catalog.scan', resource: 'catalog' })
})

test('the catalog takes two calls, asking for a scan two', async () => {
  await putCatalog(
    Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`r.test/r${index}`, [found(`m${index}`, '1.0.0')]])),
  )
  expect(await callsOf(() => Catalog.list({}))).toBe(2)
  const caller = await callerOf(undefined, 'PlatformAdmin')
  expect(await callsOf(() => Catalog.scan(caller))).toBe(2)
})
