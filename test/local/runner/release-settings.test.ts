import { createPublicKey } from 'node:crypto'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseEnvironment } from '@platform/local/release-settings'
import { parseSettings } from '@platform/local/settings'
import { generateKeyPair } from '@platform/oci/signature/key'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support.ts'

const registry = '127.0.0.1:8081'

test('releases come from the embedded registry, signed with a key of this platform that counts there alone', async () => {
  await using folder = await temporaryFolder()
  await expect(readReleaseSigningKey(folder.path)).rejects.toThrow(/ENOENT/)
  const settings = parseSettings({ PLAT_DATA_DIR: folder.path })
  const environment = await releaseEnvironment(settings, registry)
  const own = `${registry}/platform/releases`
  expect(environment['PLAT_RELEASE_SOURCE']).toBe(own)
  const key = createPublicKey(await readReleaseSigningKey(folder.path)).export({ type: 'spki', format: 'pem' })
  expect(JSON.parse(environment['PLAT_RELEASE_KEYS'] ?? '')).toEqual([
    { name: 'this platform', pem: key, repositories: [own] },
  ])
  expect(await releaseEnvironment(settings, registry)).toEqual(environment)
})

test('another source and further keys count where they are set; keys of modules do not', async () => {
  await using folder = await temporaryFolder()
  const [ours, modules] = ['ours', 'modules'].map((name) => ({ name, pem: generateKeyPair().publicKeyPem }))
  const settings = parseSettings({
    PLAT_DATA_DIR: folder.path,
    PLAT_RELEASE_SOURCE: 'registry.example.com/platform',
    PLAT_RELEASE_KEYS: JSON.stringify([ours]),
    PLAT_MODULE_KEYS: JSON.stringify([modules]),
  })
  const environment = await releaseEnvironment(settings, registry)
  expect(environment['PLAT_RELEASE_SOURCE']).toBe('registry.example.com/platform')
  expect(JSON.parse(environment['PLAT_RELEASE_KEYS'] ?? '').slice(1)).toEqual([ours])
})

test.for([
  'releases',
  'registry.example.com',
  'registry.example.com/*',
  'registry.example.com/platform:1.0.0',
  'registry.example.com/platform,registry.example.com/other',
  'https://registry.example.com/platform',
])('releases cannot come from %j', (source) => {
  expect(() => parseSettings({ PLAT_RELEASE_SOURCE: source })).toThrow('PLAT_RELEASE_SOURCE: must be')
})
