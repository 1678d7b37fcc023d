// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import { pushModule, registry, unresponsiveHost, temporaryKey } from '../../core/support/module-images.ts'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { buildImage } from '@platform/oci/build'
import { pushImage } from '@platform/oci/push'
import { signImage } from '@platform/oci/signature/sign'
import { afterEach, expect, test } from 'vitest'
import { readCatalog, releaseLimit } from '@platform/core/modules/catalog/catalog'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { get, patch } from '@platform/core/db/table'
import { scan } from '@platform/worker/modules/scan'
import { parseSources, ModuleSources } from '@platform/core/lib/settings/module-sources'
import { moduleLabels } from '../../support/module-registry.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { fastTimers } from '../../support/fast-timers.ts'
import { artifactOf } from '../../../scripts/release/artifact.ts'
import { publish } from '../../../scripts/release/publish.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../support/clock.ts'
import { isLong } from '../../support/long.ts'

const { client } = registry
const dayMs = 24 * 3_600_000

afterEach(() => removeAll(keys.catalog()))

const sourceOf = (id: string) => `${registry.host}/modules/${id}`

async function releasesOf(id: string) {
  const { repositories } = await readCatalog()
  return repositories.find(({ reference }) => reference === sourceOf(id))?.releases
}

const readProblems = async () => (await readCatalog()).scan?.problems

async function requestsOf(work: () => Promise<unknown>): Promise<string[]> {
  const requests: string[] = []
  const record = (message: unknown) => {
    const { request } = message as { request: { method: string; path: string } }
    if (request.path.startsWith('/v2/')) requests.push(`${request.method} ${request.path}`)
  }
  subscribe('http.client.request.start', record)
  await work().finally(() => unsubscribe('http.client.request.start', record))
  return requests
}

test('finds releases by digest, with version labels, names from module.json and signers', async () => {
  const id = newModuleId()
  const created = '2026-02-03T04:05:06Z'
  const oldestRelease = await pushModule({ id, version: '1.0.0', tags: ['1.0.0', 'abc123'] })
  const prerelease = await pushModule({ id, version: '1.10.0-rc.1', tags: ['latest', 'main'], created })
  const unsignedRelease = await pushModule({ id, version: '1.9.0', tags: ['1.9.0'], signer: false })
  await scan(sourceOf(id))
  const catalogEntry = { moduleId: id, name: `Module ${id}`, description: 'A module under test.', events: [] }
  const signed = { isVerified: true, verifiedBy: 'tests' }
  expect(await releasesOf(id)).toEqual([
    { ...catalogEntry, ...signed, version: '1.10.0-rc.1', digest: prerelease.digest, createdAtMs: Date.parse(created) },
    {
      ...catalogEntry,
      version: '1.9.0',
      digest: unsignedRelease.digest,
      createdAtMs: 0,
      isVerified: false,
      reason: expect.stringContaining('No signature'),
    },
    { ...catalogEntry, ...signed, version: '1.0.0', digest: oldestRelease.digest, createdAtMs: 0 },
  ])
  const { scan: lastScan } = await readCatalog()
  expect(lastScan?.problems).toEqual([])
  expect(Math.abs((lastScan?.scannedAtMs ?? 0) - now())).toBeLessThan(10_000)
})

const reads = (requests: readonly string[]) => requests.filter((request) => /GET .*\/(manifests|blobs)\//.test(request))

test('does not read known releases again, and makes two store calls', async () => {
  const id = newModuleId()
  await pushModule({ id, version: '1.0.0', tags: ['1.0.0', 'latest'] })
  const { digest } = await pushModule({ id, version: '1.1.0' })
  // Adds a signature tag, and an image that is not a module.
  await signImage(client, `modules/${id}`, digest, registry.keys.stranger.privateKeyPem, { layout: 'tag' })
  await pushImage(client, `modules/${id}`, await buildImage({ files: [] }), ['no-module'])
  const firstRequests = await requestsOf(() => scan(sourceOf(id)))
  const laterRequests = await requestsOf(() => scan(sourceOf(id)))
  expect(laterRequests.filter((request) => request.startsWith('HEAD'))).toHaveLength(4)
  // The second scan reads no images, but the manifest and the content of each signature.
  const tagged = laterRequests.filter((request) => /manifests\/sha256-/.test(request))
  expect(reads(laterRequests).length - tagged.filter((request) => request.startsWith('GET')).length).toBe(4)
  expect(reads(firstRequests).length).toBeGreaterThan(reads(laterRequests).length)
  expect(await countStoreCalls(() => scan(sourceOf(id)))).toBe(2)
})

test('does not write an unchanged repository', async () => {
  const id = newModuleId()
  await pushModule({ id, version: '1.0.0' })
  await pushModule({ id, version: '1.1.0', signer: false })
  await scan(sourceOf(id))
  const row = keys.catalogRepository(sourceOf(id))
  await transact([patch(row, { set: { mark: 'of the test' } })])
  await scan(sourceOf(id))
  expect(await get(row)).toMatchObject({ mark: 'of the test' })
  await pushModule({ id, version: '1.2.0' })
  await scan(sourceOf(id))
  expect((await get(row))?.['mark']).toBeUndefined()
})

test('verifies signatures at every scan: a signature may be added, and a key may expire', async () => {
  const [lateId, earlyId] = [newModuleId(), newModuleId()]
  const { digest } = await pushModule({ id: lateId, signer: 'stranger' })
  await pushModule({ id: earlyId, signer: temporaryKey })
  const sources = [lateId, earlyId].map(sourceOf).join(', ')
  await scan(sources)
  expect(await releasesOf(lateId)).toMatchObject([
    { isVerified: false, reason: expect.stringContaining('no trusted key') },
  ])
  expect(await releasesOf(earlyId)).toMatchObject([{ isVerified: true, verifiedBy: 'for a day' }])
  await signImage(client, `modules/${lateId}`, digest, registry.keys.trusted.privateKeyPem, { layout: 'tag' })
  advanceClock(2 * dayMs)
  await scan(sources)
  const [release] = (await releasesOf(lateId)) ?? []
  expect(release).toMatchObject({ isVerified: true, verifiedBy: 'tests' })
  expect('reason' in (release ?? {})).toBe(false)
  const [expiredRelease] = (await releasesOf(earlyId)) ?? []
  expect(expiredRelease).toMatchObject({ isVerified: false, reason: expect.stringContaining('not valid now') })
  expect('verifiedBy' in (expiredRelease ?? {})).toBe(false)
})

test('ignores images that are not modules, and reports broken modules at every scan', async () => {
  const id = newModuleId()
  await pushModule({ id, version: '1.0.0' })
  await pushModule({ id, version: '1.1.0', manifest: '{"metadata": {}}' })
  await pushModule({ id, version: '1.2.0', labels: moduleLabels(id, '9.9.9') })
  await pushModule({ id, version: '1.3.0', labels: moduleLabels('other', '1.3.0') })
  await pushImage(client, `modules/${id}`, await buildImage({ files: [], labels: moduleLabels(id, '1.4.0') }), [
    'empty',
  ])
  await pushImage(client, `modules/${id}`, await buildImage({ files: [], labels: { unlike: 'all' } }), ['no-module'])
  for (let round = 0; round < 2; round++) {
    await scan(sourceOf(id))
    expect((await releasesOf(id))?.map(({ version }) => version)).toEqual(['1.0.0'])
    const reportedProblems = (await readProblems()) ?? []
    expect(reportedProblems).toHaveLength(4)
    expect(reportedProblems.every((problem) => problem.startsWith(`${sourceOf(id)}: sha256:`))).toBe(true)
  }
})

test('drops releases without a tag', async () => {
  const id = newModuleId()
  await pushModule({ id, version: '1.0.0', tags: ['latest'] })
  await scan(sourceOf(id))
  await pushModule({ id, version: '1.1.0', tags: ['latest'] })
  await scan(sourceOf(id))
  expect((await releasesOf(id))?.map(({ version }) => version)).toEqual(['1.1.0'])
})

test('scans a whole registry, or the repositories below a path', async () => {
  const [id, teamId, teamsId] = [newModuleId(), newModuleId(), newModuleId()]
  await pushModule({ id })
  await pushModule({ id: teamId, repository: `team/${teamId}` })
  await pushModule({ id: teamsId, repository: `teams/${teamsId}` })
  await scan(`${registry.host}/team/*`)
  expect((await readCatalog()).repositories.map(({ reference }) => reference)).toEqual([
    `${registry.host}/team/${teamId}`,
  ])
  await scan(`${registry.host}/team/*,${registry.host}/*`)
  const { repositories } = await readCatalog()
  const sourceIndexOf = (name: string) =>
    repositories.find(({ reference }) => reference === `${registry.host}/${name}`)?.sourceIndex
  expect([`team/${teamId}`, `modules/${id}`, `teams/${teamsId}`].map(sourceIndexOf)).toEqual([0, 1, 1])
  await scan(sourceOf(id))
  expect((await readCatalog()).repositories.map(({ reference }) => reference)).toEqual([sourceOf(id)])
})

test('reports an unreachable registry once and keeps its releases', async () => {
  const [id, otherId] = [newModuleId(), newModuleId()]
  await pushModule({ id })
  await pushModule({ id: otherId })
  const sources = `${sourceOf(id)},${sourceOf(otherId)},${registry.host}/team/*`
  await scan(sources)
  const repositoriesBefore = (await readCatalog()).repositories
  await registry.stopDuring(() => scan(sources))
  expect((await readCatalog()).repositories).toEqual(repositoriesBefore)
  expect(await readProblems()).toHaveLength(2)
  await scan(sources)
  expect(await readProblems()).toEqual([])
})

test('an unresponsive registry or a missing repository delays no other', async () => {
  using _ = fastTimers(10_000)
  const id = newModuleId()
  await pushModule({ id })
  const missingId = newModuleId()
  const silentSources = Array.from({ length: 30 }, (_, index) => `${unresponsiveHost}/modules/m${index}`)
  await scan([...silentSources, sourceOf(missingId), sourceOf(id)].join(','))
  expect(await releasesOf(id)).toHaveLength(1)
  const reportedProblems = (await readProblems()) ?? []
  expect(reportedProblems.filter((problem) => problem.startsWith(unresponsiveHost)).length).toBeLessThanOrEqual(4)
  expect(reportedProblems.filter((problem) => problem.startsWith(sourceOf(missingId)))).toHaveLength(1)
})

test.runIf(isLong)('limits the scan to the newest tags', async () => {
  const id = newModuleId()
  await pushModule({ id, version: '2.0.0', tags: ['2.0.0'] })
  const oldImage = await pushModule({ id, version: '1.0.0', tags: ['0-old'] })
  const { bytes, descriptor } = (await client.manifest(`modules/${id}`, oldImage.digest))!
  const tags = Array.from({ length: 2 * releaseLimit + 5 }, (_, index) => `build-${index}`)
  for (const tag of tags) await client.putManifest(`modules/${id}`, tag, bytes, descriptor.mediaType)
  const requests = await requestsOf(() => scan(sourceOf(id)))
  expect(requests.filter((request) => request.startsWith('HEAD') && !request.includes('sha256'))).toHaveLength(
    2 * releaseLimit,
  )
  expect((await releasesOf(id))?.map(({ version }) => version)).toEqual(['2.0.0', '1.0.0'])
  expect(await readProblems()).toEqual([`${sourceOf(id)}: It has 407 tags; 400 of them are scanned.`])
})

test('ignores releases of the platform in the same registry, without a problem', async () => {
  const release = {
    version: '9.0.0',
    createdAt: '2026-02-03T04:05:06.000Z',
    releaseNotesUrl: 'https://example.com/notes',
  }
  const artifact = artifactOf(release, new Map([['health', Buffer.from('a zip')]]))
  await publish({ client, name: 'platform/releases' }, artifact, registry.keys.trusted.privateKeyPem)
  await scan(`${registry.host}/platform/*`)
  const { repositories } = await readCatalog()
  expect(await readProblems()).toEqual([])
  expect(repositories).toMatchObject([{ reference: `${registry.host}/platform/releases`, releases: [] }])
})

test.each([
  ['registry.example.com/modules/hello', { repository: 'modules/hello', isWhole: false }],
  ['registry.example.com/*', { repository: '', isWhole: true }],
  ['registry.example.com/team/*', { repository: 'team', isWhole: true }],
])('%s is a valid source', (text, source) => {
  const sources = [{ registry: 'registry.example.com', ...source }]
  expect(parseSources(ModuleSources.parse(` ${text} ,`))).toEqual(sources)
})
