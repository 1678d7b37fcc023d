import { createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { readImage } from '@platform/oci/image'
import { registryClient, type RegistryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { verifyImage } from '@platform/oci/signature/verify'
import {
  loadOrCreateModuleSigningKey,
  readRegistryPassword,
  loadOrCreateRegistryPassword,
} from '@platform/local/generated-secrets'
import { listenAt } from '@platform/local/listening'
import { startEmbeddedRegistry } from '@platform/local/registry/embedded'
import { helloRepository, seedHello } from '@platform/local/registry/seed'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { namesIn } from './support.ts'

async function dataFolder() {
  const folder = await temporaryFolder()
  await writeFile(join(folder.path, 'hello.mjs'), 'export {}')
  return folder
}

const start = async (dataDir: string, port = 0) => {
  const registry = await startEmbeddedRegistry(dataDir, port, () => undefined)
  return { ...registry, [Symbol.asyncDispose]: () => registry.close(0) }
}

const readerOf = ({ host }: { host: string }): RegistryClient => registryClient(host, { transport: plainTransport })
const tagsOf = (registry: { host: string }) => namesIn(readerOf(registry).tags(helloRepository))
const seed = async (registry: Awaited<ReturnType<typeof start>>, dataDir: string) =>
  seedHello(registry, dataDir, await loadOrCreateModuleSigningKey(dataDir))

test('the reference module is an image with labels and a signature of this platform', async () => {
  await using folder = await dataFolder()
  await using registry = await start(folder.path)
  expect(await seed(registry, folder.path)).toBe(true)
  const client = readerOf(registry)
  const manifest = JSON.parse(await readFile('packages/hello/module.json', 'utf8'))
  const { version, repositoryUrl } = manifest.metadata
  const image = await readImage(client, helloRepository, version)
  expect(image).toMatchObject({
    labels: {
      'org.platform.module': 'true',
      'org.platform.module.id': 'hello',
      'org.platform.module.version': version,
      'org.opencontainers.image.source': repositoryUrl,
    },
    config: { config: { Entrypoint: ['node', '/app/main.mjs'] } },
  })
  const digest = image?.topDigest ?? ''
  expect(await client.resolve(helloRepository, 'latest')).toMatchObject({ digest })
  const pem = createPublicKey(await loadOrCreateModuleSigningKey(folder.path)).export({ type: 'spki', format: 'pem' })
  const trustedKeys = [{ name: 'this platform', pem: String(pem), repositories: [helloRepository] }]
  const verification = await verifyImage(client, helloRepository, [digest], trustedKeys)
  expect(verification).toMatchObject({ isVerified: true, by: 'this platform' })
  expect((await verifyImage(client, helloRepository, [digest], [])).isVerified).toBe(false)
})

test('a later start pushes changed content only', async () => {
  await using folder = await dataFolder()
  const firstRegistry = await start(folder.path)
  await seed(firstRegistry, folder.path)
  const digestBefore = await readerOf(firstRegistry).resolve(helloRepository, 'latest')
  const referrers = await readerOf(firstRegistry).referrers(helloRepository, digestBefore?.digest ?? '')
  await firstRegistry.close(0)

  await using secondRegistry = await start(folder.path)
  expect(await seed(secondRegistry, folder.path)).toBe(false)
  expect(await readerOf(secondRegistry).resolve(helloRepository, 'latest')).toEqual(digestBefore)
  expect(await readerOf(secondRegistry).referrers(helloRepository, digestBefore?.digest ?? '')).toEqual(referrers)

  await writeFile(join(folder.path, 'hello.mjs'), 'export const changed = true')
  expect(await seed(secondRegistry, folder.path)).toBe(true)
  expect(await readerOf(secondRegistry).resolve(helloRepository, 'latest')).not.toEqual(digestBefore)
  expect(await readerOf(secondRegistry).resolve(helloRepository, digestBefore?.digest ?? '')).toEqual(digestBefore)
})

test('an interrupted push is repeated, and a removed module is not pushed again', async () => {
  await using folder = await dataFolder()
  await using registry = await start(folder.path)
  await seed(registry, folder.path)
  await rm(join(folder.path, 'registry/seeded'))
  expect(await seed(registry, folder.path)).toBe(true)

  const credentials = async () => ({ username: 'platform', password: registry.password })
  const writer = registryClient(registry.host, { transport: plainTransport, credentials })
  const { digest = '' } = (await writer.resolve(helloRepository, 'latest')) ?? {}
  await writer.remove(helloRepository, digest)
  expect(await seed(registry, folder.path)).toBe(false)
  expect((await tagsOf(registry)).filter((tag) => !tag.startsWith('sha256-'))).toEqual([])
})

test('password and key are generated once, and only their owner can read them', async () => {
  await using folder = await dataFolder()
  await expect(readRegistryPassword(folder.path)).rejects.toThrow('ENOENT')
  const readSecrets = async () => [
    await loadOrCreateRegistryPassword(folder.path),
    await loadOrCreateModuleSigningKey(folder.path),
  ]
  const secretValues = await readSecrets()
  expect(await readSecrets()).toEqual(secretValues)
  expect(await readRegistryPassword(folder.path)).toBe(secretValues[0])
  for (const name of ['registry-password', 'module-signing-key.pem']) {
    expect((await stat(join(folder.path, name))).mode & 0o777).toBe(0o600)
  }
})

test('reuses its last port, if that is free', async () => {
  await using folder = await dataFolder()
  const firstRegistry = await start(folder.path)
  expect(firstRegistry.hasMoved).toBe(true)
  await firstRegistry.close(0)
  const secondRegistry = await start(folder.path)
  expect([secondRegistry.host, secondRegistry.hasMoved]).toEqual([firstRegistry.host, false])
  await secondRegistry.close(0)

  const otherServer = createServer()
  await listenAt(otherServer, '127.0.0.1', Number(firstRegistry.host.split(':')[1]))
  const registry = await start(folder.path)
  expect(registry.host).not.toBe(firstRegistry.host)
  expect(registry.hasMoved).toBe(true)
  await registry.close(0)
  await expect(start(folder.path, Number(firstRegistry.host.split(':')[1]))).rejects.toThrow('PLAT_REGISTRY_PORT')
  otherServer.close()
  await once(otherServer, 'close')
})
