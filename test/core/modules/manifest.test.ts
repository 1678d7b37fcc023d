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
import { requestInstall } from '@platform/core/modules/install'
import { parseManifest } from '@platform/core/modules/manifest'
import * as Module from '@platform/core/modules/module'
import { readRoutes, reserveRoutesWrite } from '@platform/core/modules/routes'
import { toNpmRange, sdkVersion } from '@platform/core/modules/sdk-range'
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

function problems(document: unknown): string[] {
  const text = typeof document === 'string' ? document : JSON.stringify(document)
  try {
    parseManifest(Buffer.from(text))
    return []
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'manifest_invalid') throw error
    return (error.extra.details ?? []).map(({ path, code }) => `${path} ${code}`)
  }
}

const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/hello', order: 100 }
const check = { name: 'one', path: '/health', tags: ['critical'] }
const job = { id: 'tick', description: 'Runs.', intervalSeconds: 60 }
const spec = (change: object) => writtenManifest('hello', '1.0.0', change)
const metadata = (change: object) => writtenManifest('hello', '1.0.0', {}, change)

const fullManifest = {
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

test('accepts complete and minimal manifests, with empty lists by default', () => {
  expect(problems(fullManifest)).toEqual([])
  const { manifest, document } = parseManifest(Buffer.from(JSON.stringify(spec({}))))
  expect(manifest.spec).toMatchObject({ permissionsRequired: [], navSlots: [], healthChecks: [], backgroundJobs: [] })
  expect(document).toEqual(spec({}))
})

const nestedJson = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

test.each([
  ['no JSON', 'no', ' invalid_json'],
  ['truncated JSON', JSON.stringify(fullManifest).slice(0, -1), ' invalid_json'],
  ['an empty document', '', ' invalid_json'],
  ['a list', [], ' invalid_type'],
  ['null', null, ' invalid_type'],
  ['an empty object', {}, '/metadata invalid_type; /spec invalid_type'],
  ['an unknown key', { ...fullManifest, metdata: 1 }, ' unrecognized_keys'],
  ['a __proto__ key', `{"__proto__": {}, ${JSON.stringify(fullManifest).slice(1)}`, ' unrecognized_keys'],
  ['deep objects', nestedJson(100_000 / 6), ' too_deep'],
  ['deep lists', `{"a": ${'['.repeat(20)}${']'.repeat(20)}}`, ' too_deep'],
  ['a lone surrogate', JSON.stringify(fullManifest).replace('Runs.', String.raw`\ud800`), ' invalid_unicode'],
  ['a lone surrogate in a key', `{"\\udc00": 1}`, '/metadata invalid_type; /spec invalid_type;  unrecognized_keys'],
])('rejects %s', (_, document, expected) => {
  expect(problems(document).join('; ')).toBe(expected)
})

const invalidMetadata: [{ id?: string; version?: string; repositoryUrl?: string }, string][] = [
  [{ id: 'Hello' }, 'id invalid_format'],
  [{ id: 'catalog' }, 'id reserved'],
  [{ version: '1.0' }, 'version invalid_format'],
  [{ version: '99999999999999999999.0.0' }, 'version invalid_format'],
  [{ version: '01.0.0' }, 'version invalid_format'],
  [{ repositoryUrl: 'http://x.test/' }, 'repositoryUrl invalid_format'],
]

test.each(invalidMetadata)('rejects the metadata %o: %s', (change, expected) => {
  expect(problems(metadata(change))).toEqual([`/metadata/${expected}`])
})

const invalidSpecs: [object, ...string[]][] = [
  [{ navSlot: [] }, ' unrecognized_keys'],
  [{ sdkVersion: 'soon' }, '/sdkVersion invalid_range'],
  [{ sdkVersion: '[1.x,2.0)' }, '/sdkVersion invalid_range'],
  [{ image: 'hello:1.0.0' }, '/image invalid_reference'],
  [{ apiBasePath: '/api/v1' }, '/apiBasePath invalid_format'],
  [{ apiBasePath: '/api/v2/x' }, '/apiBasePath invalid_format'],
  [{ apiBasePath: '/api/modules/x' }, '/apiBasePath invalid_format'],
  [{ apiBasePath: '/api/x/../v1' }, '/apiBasePath invalid_format'],
  [{ apiBasePath: '/api/x?y' }, '/apiBasePath invalid_format'],
  [{ healthEndpoint: '/_platform/v1/stop' }, '/healthEndpoint reserved'],
  [{ healthChecks: [{ ...check, path: '/_platform' }] }, '/healthChecks/0/path reserved'],
  [{ healthChecks: [check, check, check] }, '/healthChecks/1 duplicate', '/healthChecks/2 duplicate'],
  [{ navSlots: [{ ...slot, icon: 'no-such-icon' }] }, '/navSlots/0/icon unknown_icon'],
  [{ navSlots: [{ ...slot, route: '/modules/other' }] }, '/navSlots/0/route foreign_route'],
  [{ navSlots: [{ ...slot, route: '/modules/hello2' }] }, '/navSlots/0/route foreign_route'],
  [{ navSlots: [slot, { ...slot, label: 'Y' }] }, '/navSlots/1 duplicate'],
  [{ navSlots: [{ ...slot, slotId: 'nav.main' }] }, '/navSlots/0/slotId invalid_value'],
  [{ backgroundJobs: [job, job] }, '/backgroundJobs/1 duplicate'],
  [{ backgroundJobs: [{ ...job, intervalSeconds: 0 }] }, '/backgroundJobs/0/intervalSeconds too_small'],
]

test.each(invalidSpecs)('rejects the spec %o: %s', (change, ...expected) => {
  expect(problems(spec(change))).toEqual(expected.map((problem) => `/spec${problem}`))
})

test('accepts a route below the page of the module and an id that another slot has', () => {
  const slots = [slot, { ...slot, slotId: 'nav.settings', route: '/modules/hello/settings' }]
  expect(problems(spec({ navSlots: slots }))).toEqual([])
})

test('accepts 256 KiB and rejects one byte more', () => {
  const text = JSON.stringify(fullManifest)
  expect(problems(text + ' '.repeat(manifestBytes - text.length))).toEqual([])
  expect(problems(text + ' '.repeat(manifestBytes - text.length + 1))).toEqual([' too_large'])
})

test('rejects invalid UTF-8', () => {
  const bytes = Buffer.from(JSON.stringify(fullManifest))
  bytes[bytes.indexOf('Runs.')] = 0xff
  expect(() => parseManifest(bytes)).toThrow(PlatformError)
})

test('reports at most fifty problems without values', () => {
  const slots = Array.from({ length: 20 }, () => ({ ...slot, icon: 'S3CRET', order: -1, label: '', slotId: 'S3CRET' }))
  const document = spec({ navSlots: slots })
  expect(problems(document)).toHaveLength(50)
  try {
    parseManifest(Buffer.from(JSON.stringify(document)))
  } catch (error) {
    expect(JSON.stringify((error as PlatformError).extra)).not.toContain('S3CRET')
  }
})

function withValue(document: unknown, path: readonly number[], value: unknown): unknown {
  if (path.length === 0 || typeof document !== 'object' || document === null) return value
  const members = Object.entries(document)
  const [name, member] = members[(path[0] ?? 0) % members.length] ?? ['x', undefined]
  const changedMember = withValue(member, path.slice(1), value)
  return Array.isArray(document) ? document.with(Number(name), changedMember) : { ...document, [name]: changedMember }
}

test('accepts or rejects manifests with random values and random bytes', () => {
  const change = fc.tuple(fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }), fc.jsonValue({ maxDepth: 3 }))
  const property = fc.property(change, ([path, value]) => {
    // `problems` throws every error except a rejected manifest.
    expect(problems(withValue(fullManifest, path, value)).length).toBeLessThanOrEqual(50)
  })
  fc.assert(property, { numRuns: 500, seed: 42 })
  const noise = fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
    expect(() => parseManifest(bytes)).toThrow(PlatformError)
  })
  fc.assert(noise, { seed: 42 })
})

/** The problems that a JSON schema can express. */
const schemaError = / (?:unrecognized_keys|invalid_format|invalid_value|too_small)$/

test('agrees with the published JSON schema', () => {
  const ajv = new Ajv.default({ strict: true, allErrors: true })
  addFormats.default(ajv)
  const isValid = ajv.compile(manifestJsonSchema())
  const validManifests = [fullManifest, spec({}), spec({ navSlots: [slot] })]
  const invalidManifests = [
    {},
    [],
    { ...fullManifest, metdata: 1 },
    ...invalidMetadata.filter(([change]) => change.id !== 'catalog').map(([change]) => metadata(change)),
    ...invalidSpecs
      .filter(([, ...codes]) => codes.every((code) => schemaError.test(code)))
      .map(([change]) => spec(change)),
    metadata({ description: undefined }),
    spec({ apiBasePath: '/api/modules' }),
    spec({ backgroundJobs: [{ ...job, intervalSeconds: 86_401 }] }),
    spec({ healthChecks: [{ ...check, tags: ['important'] }] }),
    spec({ healthEndpoint: '/a/..' }),
  ]
  for (const document of validManifests) expect([isValid(document), problems(document)]).toEqual([true, []])
  for (const document of invalidManifests) {
    expect([document, isValid(JSON.parse(JSON.stringify(document)))]).toEqual([document, false])
    expect(problems(document)).not.toEqual([])
  }
})

test('has the same SDK version as the SDK package', () => {
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
])('converts the range %j to %j', (text, range) => {
  expect(toNpmRange(text)).toBe(range)
})

test('lists a module with many warnings', async () => {
  const id = newModuleId()
  const backgroundJobs = Array.from({ length: 20 }, (_, index) => ({
    id: `job-${'x'.repeat(50)}-${index}`,
    description: 'Missing.',
    intervalSeconds: 60,
  }))
  const manifest = manifestFor(id, { backgroundJobs })
  const description = { sdkVersion: '1', id, version: '9.9.9', state: 'Started', subscriptions: [] } as const
  const warnings = warningsOf({ ...description, slots: [{}], healthChecks: [], jobs: [] }, manifest)
  await putModule(
    releaseFor(id, { spec: { backgroundJobs } }),
    reportedState({ subscriptions: [], warnings }, manifest),
  )
  expect(ModuleSchema.safeParse(await Module.read(id)).error?.issues).toBeUndefined()
})

const longVersion = `1.0.0-${'a'.repeat(250)}`
const releaseNotesUrl = `https://example.com/${'x'.repeat(1900)}`
test.each([
  ['module.failed', { message: 'x'.repeat(1000) }],
  ['update.available', { currentVersion: longVersion, releaseNotesUrl }],
  ['update.completed', {}],
  ['update.rolled_back', {}],
  ['update.failed', { action: 'apply', message: 'x'.repeat(1000) }],
] as const)('fits long versions into the notification of %s', (name, fields) => {
  const subject = 'm'.repeat(50)
  const versions = { version: longVersion, previousVersion: longVersion }
  const data = { moduleId: subject, jobId: newId('job'), ...versions, ...fields }
  const schema = Notification.pick({ title: true, body: true, resource: true })
  expect(schema.safeParse(notificationFor({ id: newId('evt'), name, subject, data })).error?.issues).toBeUndefined()
})

test('stores the newest versions of as many modules as fit', async () => {
  const version = `1.0.0-${'x'.repeat(250)}`
  const releases = Array.from({ length: 1500 }, (_, index) => catalogRelease(`${'y'.repeat(59)}-${index}`, version))
  const repositories = Array.from({ length: 15 }, (_, sourceIndex) => ({
    reference: `registry.example.com/${sourceIndex}`,
    sourceIndex,
    releases: releases.slice(sourceIndex * 100, sourceIndex * 100 + 100),
  }))
  const problems = Array.from({ length: 50 }, () => '\uffff'.repeat(500))
  await storeCatalog({ repositories, scan: { scannedAtMs: now(), problems } }, await readCatalog())
  const versions = latestVersions(await get(keys.catalogScan()))
  expect(versions.size).toBeGreaterThan(200)
  expect(versions.get(releases[0]?.moduleId ?? '')).toBe(version)
})

const installState = async () => ({ module: undefined, routes: await readRoutes() })

test('rejects an install beyond the capacity of the route reservations', async () => {
  const caller = await newCaller(undefined, 'PlatformAdmin')
  const longSubscriptions = Array.from({ length: 50 }, (_, index) => `module.${'x'.repeat(280)}.${index}`)
  const release = releaseFor(newModuleId())
  const requestNext = async () =>
    errorCodeOf(
      requestInstall(caller, releaseFor(newModuleId()), { state: await installState(), isDefaultVersion: false }),
    )
  let outcome = await requestNext()
  for (let count = 0; outcome === 'no error'; count++) {
    const id = `${release.moduleId}-${count}`
    await transact([
      reserveRoutesWrite(await readRoutes(), id, { apiBasePath: `/api/${id}`, subscriptions: longSubscriptions }),
    ])
    outcome = await requestNext()
  }
  expect(outcome).toBe('limit_reached')
  // Accepted modules still have room for their subscriptions.
  const { reservations, ...routes } = await readRoutes()
  const [lastPath = ''] = [...reservations.keys()].slice(-1)
  await transact([
    reserveRoutesWrite({ reservations, ...routes }, lastPath, {
      apiBasePath: `/api/${lastPath}`,
      subscriptions: longSubscriptions,
    }),
  ])
})
