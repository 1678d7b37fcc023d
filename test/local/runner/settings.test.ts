import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { InvalidSettings, parseSettings } from '@platform/local/settings'
import { generateKeyPair } from '@platform/oci/signature/key'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support.ts'

function weakKey(): string {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

test('without an environment the platform is private to this machine', () => {
  expect(parseSettings({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    dataDir: resolve('.platform'),
    functionThreads: 2,
    registryPort: 8081,
    sweepIntervalSeconds: 60,
    moduleTickSeconds: 60,
    moduleIsolation: 'auto',
    trustedKeys: [],
    functionsDir: resolve('functions'),
    assetsDir: resolve('dist'),
  })
})

test('the environment sets what it names; an empty value sets nothing', () => {
  const settings = parseSettings({
    PLAT_PORT: '0',
    PLAT_HOST: '::1',
    PLAT_DATA_DIR: '/var/lib/platform',
    PLAT_SWEEP_INTERVAL_SECONDS: '1',
    PLAT_FUNCTION_THREADS: '',
    LANG: 'C',
  })
  expect(settings).toMatchObject({ port: 0, host: '::1', dataDir: '/var/lib/platform', sweepIntervalSeconds: 1 })
  expect(settings.functionThreads).toBe(2)
})

test.for([
  ['the port after the API’s', { PLAT_PORT: '9000' }, 9001],
  ['a free one where the API’s is', { PLAT_PORT: '0' }, 0],
  ['a free one after the last port', { PLAT_PORT: '65535' }, 0],
  ['what is asked for', { PLAT_PORT: '0', PLAT_REGISTRY_PORT: '5000' }, 5000],
] as const)('the registry listens on %s', ([, environment, port]) => {
  expect(parseSettings(environment).registryPort).toBe(port)
})

test('keys to trust are read from their files, called as those are, and stand beside those of the cloud’s setting', async () => {
  await using folder = await temporaryFolder()
  const keys = ['ec', 'other'].map(() => generateKeyPair().publicKeyPem)
  const files = ['vendor.pem', 'team.example.pub'].map((name) => join(folder.path, name))
  await Promise.all(files.map((file, index) => writeFile(file, keys[index] ?? '')))
  const third = { name: 'third', pem: generateKeyPair().publicKeyPem, repositories: ['third'] }
  const { trustedKeys } = parseSettings({
    PLAT_MODULE_TRUSTED_KEYS: files.join(' , '),
    PLAT_MODULE_KEYS: JSON.stringify([third]),
  })
  expect(trustedKeys).toEqual([{ name: 'vendor', pem: keys[0] }, { name: 'team.example', pem: keys[1] }, third])
})

test.for([
  ['is not there', undefined, 'cannot be read'],
  ['is empty', '', 'must hold a public key'],
  ['holds a private key', generateKeyPair().privateKeyPem, 'must hold a public key'],
  ['holds something else', 'ssh-ed25519 AAAA', 'must hold a public key'],
  ['holds a key that is too weak', weakKey(), 'must hold a public key'],
] as const)('a file of a key to trust that %s ends the start with its name', async ([, content, problem]) => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'vendor.pem')
  if (content !== undefined) await writeFile(file, content)
  expect(() => parseSettings({ PLAT_MODULE_TRUSTED_KEYS: file })).toThrow(
    new RegExp(`PLAT_MODULE_TRUSTED_KEYS: ${file} ${problem}`),
  )
})

test.for([
  'hello',
  'registry.example.com',
  'registry.example.com/modules/hello:1.0.0',
  'a b/c',
  '/hello',
  'r.example/A',
])('modules cannot come from %j', (source) => {
  const sources = `registry.example.com/modules/*,${source}`
  expect(() => parseSettings({ PLAT_MODULE_SOURCES: sources })).toThrow('PLAT_MODULE_SOURCES: must be')
})

test('settings of modules take nothing that nobody would notice', () => {
  const bad = {
    PLAT_ALLOW_UNVERIFIED_MODULES: 'yes',
    PLAT_MODULE_ISOLATION: 'none',
    PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '0',
    PLAT_REGISTRY_ALLOW: 'registry',
    PLAT_MODULE_KEYS: '{}',
  }
  for (const [name, value] of Object.entries(bad)) {
    expect(() => parseSettings({ [name]: value })).toThrow(name)
  }
})

test('a release is watched no longer than functions take it', () => {
  const tooLong = { PLAT_UPDATE_BAKE_SECONDS: '61' }
  expect(() => parseSettings(tooLong)).toThrow('PLAT_UPDATE_BAKE_SECONDS')
  expect(() => parseConfig(tooLong)).toThrow('PLAT_UPDATE_BAKE_SECONDS')
  const longest = { PLAT_UPDATE_BAKE_SECONDS: '60' }
  expect(parseConfig(parseSettings(longest).functionEnvironment).PLAT_UPDATE_BAKE_SECONDS).toBe(60)
})

test('a name that means nothing, such as a mistyped one, is told; those of functions and of plat are not', () => {
  const mistyped = { PLAT_OUTBOUND_ALOW: '10.0.0.1:443', PLAT_DOMAIN: 'platform.example.com' }
  const known = { PLAT_PORT: '0', PLAT_LOG_LEVEL: 'warn', PLAT_METRICS: 'off', PLAT_TOKEN: 'x', PLAT_EMPTY: '' }
  expect(parseSettings({ ...mistyped, ...known }).ignored).toEqual(Object.keys(mistyped))
})

test('one error names every bad setting', () => {
  const bad = {
    PLAT_PORT: '70000',
    PLAT_SWEEP_INTERVAL_SECONDS: 'often',
    PLAT_LIMIT_API_BURST: '-1',
    PLAT_API_URL: 'x',
  }
  expect(() => parseSettings(bad)).toThrow(InvalidSettings)
  try {
    parseSettings(bad)
  } catch (error) {
    for (const name of Object.keys(bad)) expect(String(error)).toContain(`${name}: `)
  }
})

test.for(['1e3', '0x10', ' 5', '5.0', '٣'])('%j is not a whole number', (text) => {
  expect(() => parseSettings({ PLAT_PORT: text })).toThrow('PLAT_PORT: must be a whole number')
  // One that only functions read.
  const name = 'PLAT_OPERATION_LEASE_SECONDS'
  expect(() => parseSettings({ [name]: text })).toThrow(`${name}: must be a whole number`)
})

test('functions get every PLAT name, and limits that are high unless the environment sets them', () => {
  const { functionEnvironment } = parseSettings({
    PLAT_LIMIT_SETUP_PER_MINUTE: '3',
    PLAT_OUTBOUND_ALLOW: '10.0.0.1:443',
    AWS_PROFILE: 'private',
  })
  const config = parseConfig(functionEnvironment)
  expect(config.PLAT_LIMIT_SETUP_PER_MINUTE).toBe(3)
  expect(config.PLAT_LIMIT_ENROLL_PER_MINUTE).toBe(600)
  expect(config.PLAT_LIMIT_API_PER_MINUTE).toBe(60_000)
  expect(functionEnvironment).toHaveProperty('PLAT_OUTBOUND_ALLOW', '10.0.0.1:443')
  expect(functionEnvironment).not.toHaveProperty('AWS_PROFILE')
})

test('what the runner takes for valid, functions take for valid', () => {
  const extremes = [{}, { PLAT_LIMIT_API_BURST: '1000000', PLAT_HEARTBEAT_INTERVAL_SECONDS: '3600' }]
  for (const environment of extremes) {
    expect(() => parseConfig(parseSettings(environment).functionEnvironment)).not.toThrow()
  }
})

test('as many keys are taken as functions take, one of which is the platform’s own; a file may have any name', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, '.pem')
  await writeFile(file, generateKeyPair().publicKeyPem)
  const files = (count: number) => Array.from({ length: count }, () => file).join(',')
  const names = ['PLAT_MODULE_TRUSTED_KEYS', 'PLAT_RELEASE_TRUSTED_KEYS']
  const { trustedKeys, releaseKeys } = parseSettings(Object.fromEntries(names.map((name) => [name, files(49)])))
  for (const keys of [trustedKeys, releaseKeys]) {
    const all = JSON.stringify([{ name: 'this platform', pem: generateKeyPair().publicKeyPem }, ...keys])
    expect(parseConfig({ PLAT_MODULE_KEYS: all }).PLAT_MODULE_KEYS).toHaveLength(50)
  }
  const many = Object.fromEntries(names.map((name) => [name, files(50)]))
  for (const name of names) expect(() => parseSettings(many)).toThrow(`${name}: 50 keys are more than 49`)
})

test('the token that opens the metrics has some length, and no function gets to see it', () => {
  const token = 'a-token-of-24-characters'
  const settings = parseSettings({ PLAT_METRICS_TOKEN: token, PLAT_METRICS: 'emf' })
  expect(settings.metricsToken).toBe(token)
  expect(settings.functionEnvironment).toMatchObject({ PLAT_METRICS: 'emf' })
  expect(JSON.stringify(settings.functionEnvironment)).not.toContain(token)
  expect(() => parseSettings({ PLAT_METRICS_TOKEN: token.slice(1) })).toThrow('PLAT_METRICS_TOKEN: must have 24')
  expect(() => parseSettings({ PLAT_METRICS: 'on' })).toThrow(InvalidSettings)
})
