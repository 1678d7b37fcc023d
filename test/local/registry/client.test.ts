import { randomBytes } from 'node:crypto'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { readFile, readImage } from '@platform/oci/image'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { freshRegistry, listed, password, type TestRegistry } from './support.ts'

const repository = 'modules/hello'

const clientOf = ({ host }: TestRegistry, secret = password) =>
  registryClient(host, {
    transport: plainTransport,
    credentials: async () => ({ username: 'platform', password: secret }),
  })

const built = (text: string) =>
  buildImage({ files: [{ path: '/module.json', content: text }], labels: { 'org.platform.module': 'true' } })

test('the platform’s client pushes an image, finds it under its tags, and reads its labels and files', async () => {
  await using registry = await freshRegistry()
  const client = clientOf(registry)
  const image = await built('{"a":1}')
  await pushImage(client, repository, image, ['1.0.0', 'latest'])
  await pushImage(client, repository, image, ['again'])
  expect(await listed(client.tags(repository))).toEqual(['1.0.0', 'again', 'latest'])
  expect(await listed(client.repositories())).toEqual([repository])
  const found = await readImage(client, repository, '1.0.0')
  expect(found).toMatchObject({ digest: image.digest, labels: { 'org.platform.module': 'true' } })
  const file = found && (await readFile(client, found, ['/module.json'], 1000))
  expect(String(file)).toBe('{"a":1}')
  expect(await client.resolve(repository, 'unknown')).toBeUndefined()
})

test('a large blob is pushed once, and mounted from then on', async () => {
  await using registry = await freshRegistry()
  const client = clientOf(registry)
  const content = randomBytes(3_000_000)
  const { digest, size } = await client.putBlob(repository, content)
  await client.putBlob('modules/other', content, { mountFrom: repository })
  expect(await client.hasBlob('modules/other', digest)).toBe(true)
  expect((await client.blob('modules/other', { digest, size })).equals(content)).toBe(true)
})

test.for(['referrer', 'tag'] as const)('a signature by %s is found and holds', async (layout) => {
  await using registry = await freshRegistry()
  const client = clientOf(registry)
  const { privateKeyPem, publicKeyPem } = generateKeyPair()
  const { digest } = await pushImage(client, repository, await built('signed'), ['latest'])
  await signImage(client, repository, digest, privateKeyPem, { layout })
  const trusted = [{ name: 'vendor', pem: publicKeyPem }]
  expect(await verifyImage(client, repository, [digest], trusted)).toMatchObject({ isVerified: true, layout })
  const other = [{ name: 'other', pem: generateKeyPair().publicKeyPem }]
  expect(await verifyImage(client, repository, [digest], other)).toMatchObject({ problem: 'unknown_key' })
})

test('a digest that is removed is gone with its tags, and removing it again is fine', async () => {
  await using registry = await freshRegistry()
  const client = clientOf(registry)
  const { digest } = await pushImage(client, repository, await built('x'), ['1.0.0', 'latest'])
  for (const _ of [1, 2]) await client.remove(repository, digest)
  expect(await client.manifest(repository, 'latest')).toBeUndefined()
  expect(await listed(client.tags(repository))).toEqual([])
})

test('a client with a wrong password may read and not write, and is told so', async () => {
  await using registry = await freshRegistry()
  const image = await built('x')
  await pushImage(clientOf(registry), repository, image, ['latest'])
  const stranger = clientOf(registry, 'wrong')
  expect(await stranger.resolve(repository, 'latest')).toMatchObject({ digest: image.digest })
  const pushed = stranger.putManifest(repository, 'other', image.manifest, mediaTypes.manifest)
  await expect(pushed).rejects.toMatchObject({ name: 'RegistryError', problem: 'unauthorized' })
})
