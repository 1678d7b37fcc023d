import { digestOf } from '@platform/oci/digest'
import { readImage } from '@platform/oci/image'
import { type Descriptor, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { type MemoryRegistry, memoryRegistry } from '../support/memory-registry.ts'

const repository = 'team/hello'
const dockerConfig = 'application/vnd.docker.container.image.v1+json'

const settings = {
  architecture: 'amd64',
  os: 'linux',
  created: '2025-11-01T10:00:00Z',
  config: { Env: ['A=1'], Labels: { color: 'blue' }, WorkingDir: '/app' },
  rootfs: { type: 'layers', diff_ids: [digestOf('layer')] },
}

/** Stores a manifest with a configuration. */
async function put(
  client: MemoryRegistry,
  config: unknown,
  {
    configType = mediaTypes.config,
    type = mediaTypes.manifest,
    layers = 1,
  }: Partial<{ configType: string; type: string; layers: number }> = {},
): Promise<Descriptor> {
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  const stored = { mediaType: configType, ...(await client.putBlob(repository, Buffer.from(text))) }
  const layer = { mediaType: mediaTypes.layer, digest: digestOf('layer'), size: 5 }
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: stored,
    layers: Array.from({ length: layers }, () => layer),
  }
  return client.putManifest(repository, 'latest', Buffer.from(JSON.stringify(manifest)), type)
}

async function putIndex(client: MemoryRegistry, manifests: Descriptor[], mediaType: string = mediaTypes.index) {
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }))
  return client.putManifest(repository, 'latest', bytes, mediaType)
}

const at = (architecture: string, os = 'linux') => ({ platform: { os, architecture } })

describe('reads an image', () => {
  test('with its configuration and labels', async () => {
    const client = memoryRegistry()
    const { digest } = await put(client, settings)
    const image = await readImage(client, repository, 'latest')
    expect(image).toMatchObject({ repository, digest, topDigest: digest, config: settings, labels: { color: 'blue' } })
    expect(image?.manifest.layers).toHaveLength(1)
  })

  test('with the media types of Docker', async () => {
    const client = memoryRegistry()
    await put(client, settings, { configType: dockerConfig, type: mediaTypes.dockerManifest })
    expect(await readImage(client, repository, 'latest')).toMatchObject({ labels: { color: 'blue' } })
  })

  test.each([
    ['without runtime configuration', { ...settings, config: undefined }],
    ['with null members', { ...settings, created: null, config: { Env: null, Labels: null, Cmd: null } }],
    ['with null as runtime configuration', { ...settings, config: null }],
  ])('%s', async (_name, config) => {
    const client = memoryRegistry()
    await put(client, config)
    const image = await readImage(client, repository, 'latest')
    expect(image).toMatchObject({ labels: {}, config: { config: {} } })
    expect(image?.config.config).not.toHaveProperty('Env')
  })

  test('of the requested platform from an index, ignoring attestations', async () => {
    const client = memoryRegistry()
    const arm = await put(client, { ...settings, architecture: 'arm64' })
    const amd = await put(client, settings)
    const members = [
      { ...arm, ...at('unknown', 'unknown') },
      { ...arm, ...at('amd64', 'windows') },
      { ...arm, ...at('arm64') },
      { ...amd, ...at('amd64') },
    ]
    const top = await putIndex(client, members)
    for (const [architecture, { digest }] of Object.entries({ arm64: arm, amd64: amd })) {
      const image = await readImage(client, repository, 'latest', { os: 'linux', architecture })
      expect(image).toMatchObject({ digest, topDigest: top.digest, config: { architecture } })
    }
    const byDigest = await readImage(client, repository, top.digest, { os: 'linux', architecture: 'arm64' })
    expect(byDigest?.digest).toBe(arm.digest)
  })

  test('as undefined if it does not exist', async () => {
    expect(await readImage(memoryRegistry(), repository, 'latest')).toBeUndefined()
  })
})

const expectRejection = async (store: (client: MemoryRegistry) => Promise<unknown>) => {
  const client = memoryRegistry()
  await store(client)
  return expect(readImage(client, repository, 'latest', { os: 'linux', architecture: 'amd64' })).rejects
}

describe('rejects', () => {
  test.each([
    ['an artifact', settings, { configType: 'application/vnd.oci.empty.v1+json' }, /not an image/],
    ['too many layers', settings, { layers: 257 }, /not an image/],
    ['fewer layers than in the configuration', settings, { layers: 0 }, /configuration .* broken/],
    ['more layers than in the configuration', settings, { layers: 2 }, /configuration .* broken/],
    ['a configuration that is not JSON', 'no JSON', {}, /configuration .* broken/],
    ['a configuration that is a number', '7', {}, /configuration .* broken/],
    ['a configuration without layers', { ...settings, rootfs: undefined }, {}, /configuration .* broken/],
    ['a label that is a number', { ...settings, config: { Labels: { a: 1 } } }, {}, /configuration .* broken/],
    ['a command that is a text', { ...settings, config: { Cmd: 'node' } }, {}, /configuration .* broken/],
  ])('%s', async (_name, config, options, message) => {
    const rejects = await expectRejection((client) => put(client, config, options))
    await rejects.toMatchObject({
      name: 'RegistryError',
      problem: 'invalid',
      message: expect.stringMatching(message),
    })
  })

  test('a configuration of more than 1 MiB', async () => {
    const rejects = await expectRejection((client) => put(client, { ...settings, author: 'x'.repeat(2 ** 20) }))
    await rejects.toMatchObject({ problem: 'too_large' })
  })

  test('an index without the platform', async () => {
    const rejects = await expectRejection(async (client) =>
      putIndex(client, [{ ...(await put(client, settings)), ...at('arm64') }]),
    )
    await rejects.toMatchObject({ problem: 'invalid', message: 'team/hello has no image for linux/amd64.' })
  })

  test('an index with a missing image', async () => {
    const missing = { mediaType: mediaTypes.manifest, digest: digestOf('gone'), size: 4, ...at('amd64') }
    const rejects = await expectRejection((client) => putIndex(client, [missing]))
    await rejects.toMatchObject({ problem: 'invalid' })
  })

  test('an index in an index', async () => {
    const rejects = await expectRejection(async (client) => {
      const inner = await putIndex(client, [{ ...(await put(client, settings)), ...at('amd64') }])
      return putIndex(client, [{ ...inner, ...at('amd64') }])
    })
    await rejects.toMatchObject({ problem: 'invalid', message: expect.stringMatching(/not an image/) })
  })
})
