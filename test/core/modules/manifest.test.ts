import { manifestBytes, manifestJsonSchema } from '@platform/contract/manifest'
import { Module as ModuleSchema } from '@platform/contract/module'
import { Notification } from '@platform/contract/notification'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { PlatformError } from '@platform/core/error'
import { newId } from '@platform/core/id'
import { latestVersions, readCatalog, storeCatalog } from '@platform/core/modules/catalog/catalog'
import { parseManifest } from '@platform/core/modules/manifest'
import * as Module from '@platform/core/modules/module'
import { requestInstall } from '@platform/core/modules/install'
import { readRoutes, reserveRoutesWrite } from '@platform/core/modules/routes'
import { sdkRange, sdkVersion } from '@platform/core/modules/sdk-range'
import { notificationFor } from '@platform/core/notifications/templates'
import { sdkVersion as sdkOfModules } from '@platform/modules/protocol'
import { warningsOf } from '@platform/worker/modules/lifecycle/description'
import { reportedState } from '@platform/worker/modules/records'
import addFormats from 'ajv-formats'
import Ajv from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { errorCodeOf, newCaller } from '../../support/fixtures.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { catalogRelease, newModuleId, putModule, releaseFor } from '../support/modules.ts'

/** Where a document is refused, and why: `path code`; nothing where it is not. */
function problems(document: unknown): string[] {
  const text = typeof document === 'string' ? document : JSON.stringify(document)
  try {
    parseManifest(Buffer.from(text))
    return []
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'manifest_invalid') throw error
    return (error.extra.details ?? []).map(({ in: where, path, code }) => `${where} ${path} ${code}`)
  }
}

const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/hello', order: 100 }
const check = { name: 'one', path: '/health', tags: ['critical'] }
const job = { id: 'beat', description: 'Beats.', intervalSeconds: 60 }
const spec = (change: object) => writtenManifest('hello', '1.0.0', change)
const metadata = (change: object) => writtenManifest('hello', '1.0.0', {}, change)

const full = {
  $schema: 'https://platform.example.com/schemas/module/v1.json',
  ...writtenManifest(
    'hello',
    '1.0.0-rc.1+build.5',
    {
      image: 'registry.example.com:5000/a/hello',
      permissionsRequired: ['clusters:read'],
      navSlots: [slot],
      healthChecks: [check],
      backgroundJobs: [job],
    },
    { publisher: 'Example', license: 'MIT', repositoryUrl: 'https://example.com/hello' },
  ),
}

test('a full manifest and the least one are good, and what is left out is empty', () => {
  expect(problems(full)).toEqual([])
  const { manifest, document } = parseManifest(Buffer.from(JSON.stringify(spec({}))))
  expect(manifest.spec).toMatchObject({ permissionsRequired: [], navSlots: [], healthChecks: [], backgroundJobs: [] })
  expect(document).toEqual(spec({}))
})

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

test.each([
  ['no JSON', 'no', [' invalid_json']],
  ['a text that ends too early', JSON.stringify(full).slice(0, -1), [' invalid_json']],
  ['nothing', '', [' invalid_json']],
  ['a list', [], [' invalid_type']],
  ['null', null, [' invalid_type']],
  ['an empty object', {}, ['/metadata invalid_type', '/spec invalid_type']],
  ['a misspelt key', { ...full, metdata: 1 }, [' unrecognized_keys']],
  ['a misspelt key further down', spec({ navSlot: [] }), ['/spec unrecognized_keys']],
  ['a trap of JavaScript', `{"__proto__": {}, ${JSON.stringify(full).slice(1)}`, [' unrecognized_keys']],
  ['too deep', nested(100_000 / 6), [' too_deep']],
  ['deep in a list', `{"a": ${'['.repeat(20)}${']'.repeat(20)}}`, [' too_deep']],
  ['a lone surrogate', JSON.stringify(full).replace('Beats.', String.raw`\ud800`), [' invalid_unicode']],
  [
    'a lone surrogate in a key',
    `{"\\udc00": 1}`,
    ['/metadata invalid_type', '/spec invalid_type', ' unrecognized_keys'],
  ],
  ['an upper-case id', metadata({ id: 'Hello' }), ['/metadata/id invalid_format']],
  ['an id that is a word of ours', metadata({ id: 'catalog' }), ['/metadata/id reserved']],
  ['a version that is none', metadata({ version: '1.0' }), ['/metadata/version invalid_format']],
  [
    'a version that nobody can compare',
    metadata({ version: '99999999999999999999.0.0' }),
    ['/metadata/version invalid_format'],
  ],
  ['a version with a leading zero', metadata({ version: '01.0.0' }), ['/metadata/version invalid_format']],
  [
    'a repository without https',
    metadata({ repositoryUrl: 'http://x.test/' }),
    ['/metadata/repositoryUrl invalid_format'],
  ],
  ['a range that is none', spec({ sdkVersion: 'soon' }), ['/spec/sdkVersion invalid_range']],
  ['an interval that is none', spec({ sdkVersion: '[1.x,2.0)' }), ['/spec/sdkVersion invalid_range']],
  ['an image without a registry', spec({ image: 'hello:1.0.0' }), ['/spec/image invalid_reference']],
  ['the path of the API itself', spec({ apiBasePath: '/api/v1' }), ['/spec/apiBasePath invalid_format']],
  ['a version of the API to come', spec({ apiBasePath: '/api/v2/x' }), ['/spec/apiBasePath invalid_format']],
  ['the path of installs', spec({ apiBasePath: '/api/modules/x' }), ['/spec/apiBasePath invalid_format']],
  ['a path with dots', spec({ apiBasePath: '/api/x/../v1' }), ['/spec/apiBasePath invalid_format']],
  ['a path with a query', spec({ apiBasePath: '/api/x?y' }), ['/spec/apiBasePath invalid_format']],
  [
    'a health endpoint of the platform',
    spec({ healthEndpoint: '/_platform/v1/stop' }),
    ['/spec/healthEndpoint reserved'],
  ],
  [
    'a check of the platform',
    spec({ healthChecks: [{ ...check, path: '/_platform' }] }),
    ['/spec/healthChecks/0/path reserved'],
  ],
  [
    'an icon that is none',
    spec({ navSlots: [{ ...slot, icon: 'no-such-icon' }] }),
    ['/spec/navSlots/0/icon unknown_icon'],
  ],
  [
    'a route of another module',
    spec({ navSlots: [{ ...slot, route: '/modules/other' }] }),
    ['/spec/navSlots/0/route foreign_route'],
  ],
  [
    'a route that only begins alike',
    spec({ navSlots: [{ ...slot, route: '/modules/hello2' }] }),
    ['/spec/navSlots/0/route foreign_route'],
  ],
  ['a slot twice', spec({ navSlots: [slot, { ...slot, label: 'Y' }] }), ['/spec/navSlots/1 duplicate']],
  [
    'a check twice',
    spec({ healthChecks: [check, check, check] }),
    ['/spec/healthChecks/1 duplicate', '/spec/healthChecks/2 duplicate'],
  ],
  ['a job twice', spec({ backgroundJobs: [job, job] }), ['/spec/backgroundJobs/1 duplicate']],
  [
    'a job without a pause',
    spec({ backgroundJobs: [{ ...job, intervalSeconds: 0 }] }),
    ['/spec/backgroundJobs/0/intervalSeconds too_small'],
  ],
  [
    'a slot that is none',
    spec({ navSlots: [{ ...slot, slotId: 'nav.main' }] }),
    ['/spec/navSlots/0/slotId invalid_value'],
  ],
])('a manifest is refused where it is wrong: %s', (_, document, expected) => {
  expect(problems(document)).toEqual(expected.map((problem) => `manifest ${problem}`))
})

test('a route below the module’s own page and the same id in another slot are good', () => {
  const slots = [slot, { ...slot, slotId: 'nav.settings', route: '/modules/hello/settings' }]
  expect(problems(spec({ navSlots: slots }))).toEqual([])
})

test('a manifest may have 256 KiB and not one byte more', () => {
  const text = JSON.stringify(full)
  expect(problems(text + ' '.repeat(manifestBytes - text.length))).toEqual([])
  expect(problems(text + ' '.repeat(manifestBytes - text.length + 1))).toEqual(['manifest  too_large'])
})

test('a text that is not UTF-8 is refused', () => {
  const bytes = Buffer.from(JSON.stringify(full))
  bytes[bytes.indexOf('Beats.')] = 0xff
  expect(() => parseManifest(bytes)).toThrow(PlatformError)
})

test('of a manifest that is wrong everywhere fifty places are told, and nothing of what stood there', () => {
  const slots = Array.from({ length: 20 }, () => ({ ...slot, icon: 'S3CRET', order: -1, label: '', slotId: 'S3CRET' }))
  const document = spec({ navSlots: slots })
  expect(problems(document)).toHaveLength(50)
  try {
    parseManifest(Buffer.from(JSON.stringify(document)))
  } catch (error) {
    expect(JSON.stringify((error as PlatformError).extra)).not.toContain('S3CRET')
  }
})

/** The document with another value at one of its members. */
function withValue(document: unknown, path: readonly number[], value: unknown): unknown {
  if (path.length === 0 || typeof document !== 'object' || document === null) return value
  const members = Object.entries(document)
  const [name, member] = members[(path[0] ?? 0) % members.length] ?? ['x', undefined]
  const changed = withValue(member, path.slice(1), value)
  return Array.isArray(document) ? document.with(Number(name), changed) : { ...document, [name]: changed }
}

test('whatever stands at whatever place, a manifest is good or refused, and nothing else happens', () => {
  const change = fc.tuple(fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }), fc.jsonValue({ maxDepth: 3 }))
  const property = fc.property(change, ([path, value]) => {
    // It throws what is no refusal.
    expect(problems(withValue(full, path, value)).length).toBeLessThanOrEqual(50)
  })
  fc.assert(property, { numRuns: 500, seed: 42 })
  const noise = fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
    expect(() => parseManifest(bytes)).toThrow(PlatformError)
  })
  fc.assert(noise, { seed: 42 })
})

test('the published schema says the same as the platform, as far as a schema can', () => {
  const ajv = new Ajv.default({ strict: true, allErrors: true })
  addFormats.default(ajv)
  const isGood = ajv.compile(manifestJsonSchema())
  const good = [full, spec({}), spec({ navSlots: [slot] })]
  const bad = [
    {},
    [],
    { ...full, metdata: 1 },
    spec({ navSlot: [] }),
    metadata({ id: 'Hello' }),
    metadata({ version: '1.0' }),
    metadata({ description: undefined }),
    spec({ apiBasePath: '/api/v1' }),
    spec({ apiBasePath: '/api/modules' }),
    spec({ backgroundJobs: [{ ...job, intervalSeconds: 86_401 }] }),
    spec({ navSlots: [{ ...slot, slotId: 'nav.main' }] }),
    spec({ healthChecks: [{ ...check, tags: ['important'] }] }),
    spec({ healthEndpoint: '/a/..' }),
    metadata({ repositoryUrl: 'http://example.com/hello' }),
    metadata({ version: '99999999999999999999.0.0' }),
  ]
  for (const document of good) expect([isGood(document), problems(document)]).toEqual([true, []])
  for (const document of bad) {
    expect([document, isGood(JSON.parse(JSON.stringify(document)))]).toEqual([document, false])
    expect(problems(document)).not.toEqual([])
  }
})

test('the platform asks for the version of the SDK that it comes with', () => {
  expect(sdkVersion).toBe(sdkOfModules)
})

test.each([
  ['[0.1.0,1.0.0)', '>=0.1.0 <1.0.0'],
  ['( 0.1.0 , 1.0.0 ]', '>0.1.0 <=1.0.0'],
  ['[0.1.0,)', '>=0.1.0'],
  ['(,1.0.0)', '<1.0.0'],
  ['(,)', '*'],
  ['[0.1,1)', '>=0.1.0 <1.0.0'],
  ['[0.1.0-rc.1,1.0]', '>=0.1.0-rc.1 <=1.0.0'],
  ['^0.1', '>=0.1.0 <0.2.0-0'],
  ['', undefined],
  ['   ', undefined],
  ['[0.1.0]', undefined],
  ['[0.1.0,1.0.0', undefined],
  ['[a,b)', undefined],
  ['latest', undefined],
  ['9'.repeat(128), undefined],
])('the range %j is %j', (text, range) => {
  expect(sdkRange(text)).toBe(range)
})

/** What authors write may be as long as the manifest allows; whatever the platform makes of it fits where it has to. */

const digestOf = (index: number): string => `sha256:${String(index).padStart(64, '0')}`

test('a module whose code has none of its twenty jobs is listed as the contract says', async () => {
  const id = newModuleId()
  const backgroundJobs = Array.from({ length: 20 }, (_, index) => ({
    id: `job-${'x'.repeat(50)}-${index}`,
    description: 'It is not there.',
    intervalSeconds: 60,
  }))
  const manifest = manifestFor(id, { backgroundJobs })
  const description = { sdkVersion: '1', id, version: '9.9.9', state: 'Started', subscriptions: [] } as const
  const warnings = warningsOf({ ...description, slots: [{}], healthChecks: [], jobs: [] }, manifest)
  await putModule(releaseFor(id, { spec: { backgroundJobs } }), reportedState({ subscriptions: [], warnings }))
  expect(ModuleSchema.safeParse(await Module.read(id)).error?.issues).toBeUndefined()
})

test('a notification about a module fits its fields, however long the version is', () => {
  const [moduleId, jobId, version] = ['m'.repeat(50), newId('job'), `1.0.0-${'a'.repeat(250)}`]
  const data = { moduleId, version, jobId, message: 'x'.repeat(1000) }
  const telling = notificationFor({ id: newId('evt'), name: 'module.failed', subject: moduleId, data })
  const { title, body, resource } = Notification.shape
  expect(
    [title, body, resource].map((schema, index) => {
      const value = [telling?.title, telling?.body, telling?.resource][index]
      return schema.safeParse(value).error?.issues
    }),
  ).toEqual([undefined, undefined, undefined])
})

test('a repository whose releases and problems are as long as they can be is stored, and the scan with it', async () => {
  const long = '\u0001'
  const releases = Array.from({ length: 120 }, (_, index) =>
    catalogRelease(newModuleId(), '1.0.0', {
      digest: digestOf(index),
      name: long.repeat(80),
      description: long.repeat(300),
      isVerified: false,
      reason: 'x'.repeat(500),
    }),
  )
  const others = Array.from({ length: 80 }, (_, index) => ({
    digest: digestOf(1000 + index),
    problem: long.repeat(150),
  }))
  const repository = { reference: 'registry.example.com/hostile', place: 0, releases, others }
  await storeCatalog({ repositories: [repository], scan: { scannedAtMs: now(), problems: [] } }, { repositories: [] })
  const { repositories, scan } = await readCatalog()
  expect(scan).toBeDefined()
  expect(repositories[0]?.releases.length).toBeGreaterThan(50)
})

test('a scan tells the newest versions of as many modules as fit, however long they are', async () => {
  const version = `1.0.0-${'x'.repeat(250)}`
  const releases = Array.from({ length: 1500 }, (_, index) => catalogRelease(`${'y'.repeat(59)}-${index}`, version))
  const repositories = Array.from({ length: 15 }, (_, place) => ({
    reference: `registry.example.com/${place}`,
    place,
    releases: releases.slice(place * 100, place * 100 + 100),
  }))
  const problems = Array.from({ length: 50 }, () => '\uffff'.repeat(500))
  await storeCatalog({ repositories, scan: { scannedAtMs: now(), problems } }, await readCatalog())
  const latest = latestVersions(await get(keys.catalogScan()))
  expect(latest.size).toBeGreaterThan(200)
  expect(latest.get(releases[0]?.moduleId ?? '')).toBe(version)
})

const standing = async () => ({ module: undefined, routes: await readRoutes() })

test('where there is no room for another module an install says so, and the modules that are there go on', async () => {
  const caller = await newCaller(undefined, 'PlatformAdmin')
  const long = Array.from({ length: 50 }, (_, index) => `module.${'x'.repeat(280)}.${index}`)
  const release = releaseFor(newModuleId())
  const accept = async () =>
    errorCodeOf(requestInstall(caller, releaseFor(newModuleId()), { state: await standing(), isDefaultVersion: false }))
  let answer = await accept()
  for (let count = 0; answer === 'no error'; count++) {
    const id = `${release.moduleId}-${count}`
    await transact([reserveRoutesWrite(await readRoutes(), id, { apiBasePath: `/api/${id}`, subscriptions: long })])
    answer = await accept()
  }
  expect(answer).toBe('limit_reached')
  // There is room for what those that were accepted are going to say of themselves.
  const { reservations, ...routes } = await readRoutes()
  const [last = ''] = [...reservations.keys()].slice(-1)
  await transact([
    reserveRoutesWrite({ reservations, ...routes }, last, { apiBasePath: `/api/${last}`, subscriptions: long }),
  ])
})
