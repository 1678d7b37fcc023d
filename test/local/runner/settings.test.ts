import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseEnvironment } from '@platform/local/release-settings'
import { InvalidSettings, parseSettings } from '@platform/local/settings'
import { generateKeyPair } from '@platform/oci/signature/key'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const weakKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ type: 'spki', format: 'pem' }).toString()

test('the defaults listen on loopback only', () => {
  expect(parseSettings({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    dataDir: resolve('.platform'),
    functionThreads: 2,
    registryPort: 8081,
    sweepIntervalSeconds: 60,
    moduleSupervisionSeconds: 60,
    moduleIsolation: 'auto',
    trustedKeys: [],
    functionsDir: resolve('functions'),
    assetsDir: resolve('dist'),
  })
})

test('an empty value counts as unset', () => {
  const environment = { PLAT_PORT: '0', PLAT_HOST: '::1', PLAT_DATA_DIR: '/var/lib/platform', LANG: 'C' }
  const expected = { port: 0, host: '::1', dataDir: '/var/lib/platform', functionThreads: 2 }
  expect(parseSettings({ ...environment, PLAT_FUNCTION_THREADS: '' })).toMatchObject(expected)
})

test.for([
  ['the next port', { PLAT_PORT: '9000' }, 9001],
  ['a free port if the API does', { PLAT_PORT: '0' }, 0],
  ['a free port after the last one', { PLAT_PORT: '65535' }, 0],
  ['its configured port', { PLAT_PORT: '0', PLAT_REGISTRY_PORT: '5000' }, 5000],
] as const)('the registry listens on %s', ([, environment, port]) => {
  expect(parseSettings(environment).registryPort).toBe(port)
})

test.for(['proxy.example', '10.0.0.0/33', '0.0.0.0/0', '::/0', '10.0.0.0/08', '127.0.0.1/'])(
  'rejects %s as a trusted proxy',
  (item) => {
    const message = `PLAT_TRUSTED_PROXIES: "${item}" must be an address or a CIDR block of proxies`
    expect(() => parseSettings({ PLAT_TRUSTED_PROXIES: `::1, ${item}` })).toThrow(message)
  },
)

test('reads trusted keys from files, named after them, and adds those of PLAT_MODULE_KEYS', async () => {
  await using folder = await temporaryFolder()
  const keys = ['ec', 'other'].map(() => generateKeyPair().publicKeyPem)
  const files = ['vendor.pem', 'team.example.pub'].map((name) => join(folder.path, name))
  await Promise.all(files.map((file, index) => writeFile(file, keys[index] ?? '')))
  const thirdKey = { name: 'third', pem: generateKeyPair().publicKeyPem, repositories: ['third'] }
  const PLAT_MODULE_KEYS = JSON.stringify([thirdKey])
  const { trustedKeys } = parseSettings({ PLAT_MODULE_TRUSTED_KEYS: files.join(' , '), PLAT_MODULE_KEYS })
  expect(trustedKeys).toEqual([{ name: 'vendor', pem: keys[0] }, { name: 'team.example', pem: keys[1] }, thirdKey])
})

test.for([
  ['a missing', undefined, 'cannot be read'],
  ['an empty', '', 'must contain a public key'],
  ['a private', generateKeyPair().privateKeyPem, 'must contain a public key'],
  ['an SSH', 'ssh-ed25519 AAAA', 'must contain a public key'],
  ['a weak', weakKey(), 'must contain a public key'],
] as const)('rejects %s trusted key with the name of its file', async ([, content, problem]) => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'vendor.pem')
  if (content !== undefined) await writeFile(file, content)
  const message = `PLAT_MODULE_TRUSTED_KEYS: ${file} ${problem}`
  expect(() => parseSettings({ PLAT_MODULE_TRUSTED_KEYS: file })).toThrow(message)
})

test('limits the number of trusted keys, and accepts any file name', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, '.pem')
  await writeFile(file, generateKeyPair().publicKeyPem)
  const names = ['PLAT_MODULE_TRUSTED_KEYS', 'PLAT_RELEASE_TRUSTED_KEYS']
  const environment = (count: number) => {
    const fileList = Array.from({ length: count }, () => file).join(',')
    return Object.fromEntries(names.map((name) => [name, fileList]))
  }
  const { trustedKeys, releaseKeys } = parseSettings(environment(49))
  for (const keys of [trustedKeys, releaseKeys]) {
    const allKeys = JSON.stringify([{ name: 'this platform', pem: generateKeyPair().publicKeyPem }, ...keys])
    expect(parseConfig({ PLAT_MODULE_KEYS: allKeys }).PLAT_MODULE_KEYS).toHaveLength(50)
  }
  for (const name of names) expect(() => parseSettings(environment(50))).toThrow(`${name}: 50 keys are more than 49`)
})

const invalidSettings: [name: string, value: string, message?: string][] = [
  ...'hello registry.example.com registry.example.com/modules/hello:1.0.0 /hello r.example/A https://r.example/a *'
    .split(' ')
    .map((source): [string, string, string] => ['PLAT_MODULE_SOURCES', `r.example/modules/*,${source}`, 'must be']),
  ...'releases r.example r.example/* r.example/a:1.0.0 r.example/a,r.example/b https://r.example/a'
    .split(' ')
    .map((source): [string, string, string] => ['PLAT_RELEASE_SOURCE', source, 'must be']),
  ['PLAT_MODULE_SOURCES', 'r.example/modules/*,a b/*', 'must be'],
  ...['1e3', '0x10', ' 5', '5.0', '٣'].flatMap((number): [string, string, string][] => [
    ['PLAT_PORT', number, 'must be a whole number'],
    ['PLAT_OPERATION_LEASE_SECONDS', number, 'must be a whole number'],
  ]),
  ['PLAT_ALLOW_UNVERIFIED_MODULES', 'yes'],
  ['PLAT_MODULE_ISOLATION', 'none'],
  ['PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS', '0'],
  ['PLAT_REGISTRY_ALLOW', 'registry'],
  ['PLAT_MODULE_KEYS', '{}'],
  ['PLAT_UPDATE_BAKE_SECONDS', '61'],
  ['PLAT_METRICS', 'on'],
  ['PLAT_METRICS_TOKEN', 'a-token-of-23-character', 'must have 24'],
]

test.for(invalidSettings)('rejects %s=%s', ([name, value, message = '']) => {
  expect(() => parseSettings({ [name]: value })).toThrow(InvalidSettings)
  expect(() => parseSettings({ [name]: value })).toThrow(`${name}: ${message}`)
})

test('reports unknown PLAT_ names, but not those of functions, relays and the CLI', () => {
  const unknownSettings = { PLAT_OUTBOUND_ALOW: '10.0.0.1:443', PLAT_DOMAIN: 'platform.example.com' }
  const knownSettings = { PLAT_PORT: '0', PLAT_LOG_LEVEL: 'warn', PLAT_METRICS: 'off', PLAT_TOKEN: 'x', PLAT_EMPTY: '' }
  expect(parseSettings({ ...unknownSettings, ...knownSettings }).ignored).toEqual(Object.keys(unknownSettings))
})

test('functions get all PLAT_ settings except the metrics token, and high rate limits by default', () => {
  const PLAT_METRICS_TOKEN = 'a-token-of-24-characters'
  const { functionEnvironment, metricsToken } = parseSettings({
    PLAT_LIMIT_SETUP_PER_MINUTE: '3',
    PLAT_OUTBOUND_ALLOW: '10.0.0.1:443',
    PLAT_UPDATE_BAKE_SECONDS: '60',
    PLAT_HEARTBEAT_INTERVAL_SECONDS: '3600',
    PLAT_LIMIT_API_BURST: '1000000',
    PLAT_METRICS: 'emf',
    PLAT_METRICS_TOKEN,
    AWS_PROFILE: 'private',
  })
  expect(parseConfig(functionEnvironment)).toMatchObject({
    PLAT_LIMIT_SETUP_PER_MINUTE: 3,
    PLAT_LIMIT_ENROLL_PER_MINUTE: 600,
    PLAT_LIMIT_API_PER_MINUTE: 60_000,
    PLAT_UPDATE_BAKE_SECONDS: 60,
  })
  expect(functionEnvironment).toMatchObject({ PLAT_OUTBOUND_ALLOW: '10.0.0.1:443', PLAT_METRICS: 'emf' })
  expect(functionEnvironment).not.toHaveProperty('AWS_PROFILE')
  expect(metricsToken).toBe(PLAT_METRICS_TOKEN)
  expect(JSON.stringify(functionEnvironment)).not.toContain(PLAT_METRICS_TOKEN)
})

const registry = '127.0.0.1:8081'

test('releases come from the embedded registry by default, verified by a key for that repository only', async () => {
  await using folder = await temporaryFolder()
  await expect(readReleaseSigningKey(folder.path)).rejects.toThrow(/ENOENT/)
  const settings = parseSettings({ PLAT_DATA_DIR: folder.path })
  const environment = await releaseEnvironment(settings, registry)
  const repository = `${registry}/platform/releases`
  expect(environment['PLAT_RELEASE_SOURCE']).toBe(repository)
  const pem = createPublicKey(await readReleaseSigningKey(folder.path)).export({ type: 'spki', format: 'pem' })
  expect(JSON.parse(environment['PLAT_RELEASE_KEYS'] ?? '')).toEqual([
    { name: 'this platform', pem, repositories: [repository] },
  ])
  expect(await releaseEnvironment(settings, registry)).toEqual(environment)
})

test('uses a configured release source and its keys, but not the keys of modules', async () => {
  await using folder = await temporaryFolder()
  const [release, module] = ['release', 'module'].map((name) => ({ name, pem: generateKeyPair().publicKeyPem }))
  const settings = parseSettings({
    PLAT_DATA_DIR: folder.path,
    PLAT_RELEASE_SOURCE: 'registry.example.com/platform',
    PLAT_RELEASE_KEYS: JSON.stringify([release]),
    PLAT_MODULE_KEYS: JSON.stringify([module]),
  })
  const environment = await releaseEnvironment(settings, registry)
  expect(environment['PLAT_RELEASE_SOURCE']).toBe('registry.example.com/platform')
  expect(JSON.parse(environment['PLAT_RELEASE_KEYS'] ?? '').slice(1)).toEqual([release])
})
