import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { digestOf } from '@platform/oci/digest'
import { readFile, readImage } from '@platform/oci/image'
import { layersOf } from '@platform/oci/layer'
import { type Descriptor, type Image, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { imageOfEntries, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { type MemoryRegistry, memoryRegistry } from '../support/memory-registry.ts'
import { file, folder, hardLink, storeImage, symlink } from './support.ts'

const repository = 'team/hello'
const dockerConfig = 'application/vnd.docker.container.image.v1+json'

const settings = {
  architecture: 'amd64',
  os: 'linux',
  created: '2025-11-01T10:00:00Z',
  config: { Env: ['A=1'], Labels: { color: 'blue' }, WorkingDir: '/app' },
  rootfs: { type: 'layers', diff_ids: [digestOf('layer')] },
}

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
  const storedConfig = { mediaType: configType, ...(await client.putBlob(repository, Buffer.from(text))) }
  const layer = { mediaType: mediaTypes.layer, digest: digestOf('layer'), size: 5 }
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: storedConfig,
    layers: Array.from({ length: layers }, () => layer),
  }
  return client.putManifest(repository, 'latest', Buffer.from(JSON.stringify(manifest)), type)
}

async function putIndex(client: MemoryRegistry, manifests: Descriptor[], mediaType: string = mediaTypes.index) {
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }))
  return client.putManifest(repository, 'latest', bytes, mediaType)
}

const platformOf = (architecture: string, os = 'linux') => ({ platform: { os, architecture } })

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
      { ...arm, ...platformOf('unknown', 'unknown') },
      { ...arm, ...platformOf('amd64', 'windows') },
      { ...arm, ...platformOf('arm64') },
      { ...amd, ...platformOf('amd64') },
    ]
    const indexDescriptor = await putIndex(client, members)
    for (const [architecture, { digest }] of Object.entries({ arm64: arm, amd64: amd })) {
      const image = await readImage(client, repository, 'latest', { os: 'linux', architecture })
      expect(image).toMatchObject({ digest, topDigest: indexDescriptor.digest, config: { architecture } })
    }
    const image = await readImage(client, repository, indexDescriptor.digest, { os: 'linux', architecture: 'arm64' })
    expect(image?.digest).toBe(arm.digest)
  })

  test('as undefined if it does not exist', async () => {
    expect(await readImage(memoryRegistry(), repository, 'latest')).toBeUndefined()
  })
})

const indexOfOne = async (client: MemoryRegistry, architecture: string) =>
  putIndex(client, [{ ...(await put(client, settings)), ...platformOf(architecture) }])

const missingManifest = { mediaType: mediaTypes.manifest, digest: digestOf('gone'), size: 4, ...platformOf('amd64') }
const brokenError = /configuration .* broken/

test.each<[string, (client: MemoryRegistry) => Promise<unknown>, RegExp, problem?: string]>([
  ['an artifact', (client) => put(client, settings, { configType: mediaTypes.empty }), /not an image/],
  ['too many layers', (client) => put(client, settings, { layers: 257 }), /not an image/],
  ['fewer layers than in the configuration', (client) => put(client, settings, { layers: 0 }), brokenError],
  ['more layers than in the configuration', (client) => put(client, settings, { layers: 2 }), brokenError],
  ['a configuration that is not JSON', (client) => put(client, 'no JSON'), brokenError],
  ['a configuration that is a number', (client) => put(client, '7'), brokenError],
  ['a configuration without layers', (client) => put(client, { ...settings, rootfs: undefined }), brokenError],
  ['a label that is a number', (client) => put(client, { ...settings, config: { Labels: { a: 1 } } }), brokenError],
  ['a command that is a text', (client) => put(client, { ...settings, config: { Cmd: 'node' } }), brokenError],
  [
    'a configuration of more than 1 MiB',
    (client) => put(client, { ...settings, author: 'x'.repeat(2 ** 20) }),
    /./,
    'too_large',
  ],
  [
    'an index without the platform',
    (client) => indexOfOne(client, 'arm64'),
    /^team\/hello has no image for linux\/amd64\.$/,
  ],
  ['an index with a missing image', (client) => putIndex(client, [missingManifest]), /./],
  [
    'an index in an index',
    async (client) => putIndex(client, [{ ...(await indexOfOne(client, 'amd64')), ...platformOf('amd64') }]),
    /not an image/,
  ],
])('rejects %s', async (_name, store, message, problem = 'invalid') => {
  const client = memoryRegistry()
  await store(client)
  const reading = readImage(client, repository, 'latest', { os: 'linux', architecture: 'amd64' })
  const error = { name: 'RegistryError', problem, message: expect.stringMatching(message) }
  await expect(reading).rejects.toMatchObject(error)
})

const [blockBytes, mebibyte] = [512, 2 ** 20]

async function globalAttributes(attributes: number): Promise<Buffer> {
  const records = Array.from({ length: attributes }, (_, index) => ` ${index.toString(36)}=\n`)
  const content = records.map((record) => `${record.length + String(record.length + 1).length}${record}`).join('')
  const archive = (await tarOf([{ name: 'all', content }])).subarray(0, -2 * blockBytes)
  archive.write('g', 156)
  const sum = archive.subarray(0, blockBytes).reduce((total, byte, at) => total + (at < 148 || at > 155 ? byte : 32), 0)
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return archive
}

async function readTar(tar: Buffer): Promise<string | undefined> {
  const { client, image } = await storeImage(layerOf(tar))
  return (await readFile(client, image, ['/module.json'], 1000))?.toString()
}

test.each([
  ['50,000 global attributes', 50_000, /has more than 100 attributes/, 'invalid'],
  ['500,000 global attributes', 500_000, /too much metadata/, 'too_large'],
] as const)('rejects a layer with %s', async (_name, attributes, message, problem) => {
  const files = await tarOf(
    Array.from({ length: 100 }, (_, index) => ({ name: `file-${index}`, pax: { comment: 'x' } })),
  )
  const refusal = readTar(Buffer.concat([await globalAttributes(attributes), files]))
  await expect(refusal).rejects.toMatchObject({ problem, message: expect.stringMatching(message) })
})

test('rejects a layer with repeated global attributes and no file', async () => {
  const attributes = await globalAttributes(2000)
  const reading = readTar(Buffer.concat(Array<Buffer>(2000).fill(attributes)))
  await expect(reading).rejects.toMatchObject({ problem: 'too_large' })
})

test('accepts many files with long names and attributes, and a large file', async () => {
  const attributes = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`SCHILY.xattr.user.${index}`, 'x']))
  const parent = 'deep/'.repeat(60)
  const files = Array.from({ length: 1000 }, (_, index) => ({ name: `${parent}${index}`, pax: attributes }))
  const largeEntry = { name: 'large', content: Buffer.alloc(3 * mebibyte) }
  expect(await readTar(await tarOf([...files, largeEntry, { name: 'module.json', content: '{}' }]))).toBe('{}')
})
async function controlledRegistry() {
  const registry = memoryRegistry()
  const image = await imageOfEntries(registry, [{ name: 'module.json', content: 'm' }])
  const [layer] = image.manifest.layers
  const bytes = await registry.blob('team/hello', layer!)
  const requests = new Map<number, { send: () => void; fail: (error: Error) => void }>()
  const blob: typeof registry.blob = (_repository, { size }) =>
    new Promise((resolve, reject) => requests.set(size / mebibyte, { send: () => resolve(bytes), fail: reject }))
  const read = (mebibytes: number) => {
    const layers = [{ ...layer!, size: mebibytes * mebibyte }]
    const largeImage: Image = { ...image, manifest: { ...image.manifest, layers } }
    return readFile({ ...registry, blob }, largeImage, ['module.json'], 10)
  }
  const requestedSizes = async () => {
    await setImmediate()
    return [...requests.keys()].toSorted((a, b) => a - b)
  }
  return { requests, read, requestedSizes }
}

test('limits the memory of concurrent reads, without delaying small layers', async () => {
  const { requests, read, requestedSizes } = await controlledRegistry()
  const [first, ...others] = [100, 110, 120, 256, 1].map(read)
  expect(await requestedSizes()).toEqual([1, 100, 110])
  requests.get(100)?.fail(new Error('The connection ended.'))
  await expect(first).rejects.toThrow('ended')
  expect(await requestedSizes()).toEqual([1, 100, 110, 120])
  for (const size of [1, 110, 120]) requests.get(size)?.send()
  const [second, third, fourth, fifth] = others
  await Promise.all([second, third, fifth])
  expect(await requestedSizes()).toEqual([1, 100, 110, 120, 256])
  requests.get(256)?.send()
  expect((await fourth)?.toString()).toBe('m')
})
const read = async (paths: string[], ...layers: RawEntry[][]) => {
  const { client, image } = await storeImage(...layers)
  return (await readFile(client, image, paths, 1000))?.toString()
}

// image-path.test.ts compares reading with unpacking for random layers.
test.each<[string, string | undefined, RawEntry[][]]>([
  ['from the only layer', 'm', [[file('module.json', 'm')]]],
  ['from the topmost layer', 'new', [[file('module.json', 'old')], [file('module.json', 'new')], [file('x')]]],
  ['with an absolute name', 'm', [[file('/module.json', 'm')]]],
  ['with a leading dot', 'm', [[file('./module.json', 'm')]]],
  ['that does not exist', undefined, [[file('other')]]],
  ['from the last of two entries', 'two', [[file('module.json', 'one'), file('module.json', 'two')]]],
  ['replaced by a folder', undefined, [[file('module.json')], [folder('module.json')]]],
  ['replaced by a symbolic link', undefined, [[file('module.json')], [symlink('module.json', 'x')]]],
  ['replaced by a hard link', undefined, [[file('module.json'), hardLink('module.json', 'x')]]],
  ['that is empty', '', [[file('module.json', 'old')], [file('module.json', '')]]],
])('reads a file %s', async (_name, content, layers) => {
  expect(await read(['/module.json'], ...layers)).toBe(content)
})

test.each<[string, string | undefined, RawEntry[]]>([
  ['exists', 'm', [folder('app')]],
  ['is removed', undefined, [file('.wh.app', '')]],
  ['is emptied', undefined, [file('app/.wh..wh..opq', '')]],
  ['becomes a link', undefined, [symlink('app', 'x')]],
  ['has a similar name as a removed one', 'm', [file('.wh.ap', ''), file('appl/.wh..wh..opq', '')]],
])('reads a file in a folder that %s', async (_name, content, layer) => {
  expect(await read(['/app/module.json'], [file('app/module.json', 'm')], layer)).toBe(content)
})

test.each<[string[], string, RawEntry[]]>([
  [['/module.json', '/app/module.json'], 'root', []],
  [['/app/module.json', '/module.json'], 'app', []],
  [['/module.json', '/app/module.json'], 'top', [file('app/module.json', 'top')]],
  [['/module.json', '/app/module.json'], 'app', [file('.wh.module.json', '')]],
])('reads the first of %j in the topmost layer that has any: %s', async (paths, content, layer) => {
  expect(await read(paths, [file('app/module.json', 'app'), file('module.json', 'root')], layer)).toBe(content)
})

test('reads a file without fetching lower layers', async () => {
  const { client, image } = await storeImage([file('a')], [file('module.json', 'm'), file('.wh.b', '')])
  client.blobs.delete(`${repository} ${image.manifest.layers[0]?.digest}`)
  expect((await readFile(client, image, ['/module.json'], 10))?.toString()).toBe('m')
  expect(await readFile(client, image, ['/b'], 10)).toBeUndefined()
  await expect(readFile(client, image, ['/a'], 10)).rejects.toMatchObject({ problem: 'not_found' })
})

test('reads a file up to a size limit', async () => {
  const { client, image } = await storeImage([file('module.json', '12345')])
  expect((await readFile(client, image, ['module.json'], 5))?.toString()).toBe('12345')
  const error = { problem: 'too_large', message: '/module.json has more than 4 bytes.' }
  await expect(readFile(client, image, ['module.json'], 4)).rejects.toMatchObject(error)
})

test('rejects a layer that is broken or has another digest', async () => {
  const layer = layerOf(await tarOf([file('x')]))
  for (const invalidLayer of [{ ...layer, diffId: digestOf('other') }, layerOf(Buffer.from('no archive'))]) {
    const { client, image } = await storeImage(invalidLayer)
    await expect(readFile(client, image, ['y'], 10)).rejects.toMatchObject({ problem: 'invalid' })
  }
})

test('limits the unpacked size of a gzip bomb', async () => {
  // 16 members of 160 MiB exceed 2 GiB in total.
  const bytes = Buffer.concat(Array<Buffer>(16).fill(gzipSync(Buffer.alloc(160 * mebibyte))))
  const descriptor = { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length }
  const { client, image } = await storeImage({ descriptor, diffId: digestOf('bomb'), bytes })
  await expect(readFile(client, image, ['y'], 10)).rejects.toMatchObject({ problem: 'too_large' })
})

test('does not fetch a layer of more than 256 MiB', async () => {
  const { client, image } = await storeImage([file('module.json')])
  const layers = [{ ...image.manifest.layers[0]!, size: 256 * mebibyte + 1 }]
  const largeImage: Image = { ...image, manifest: { ...image.manifest, layers } }
  await expect(readFile(client, largeImage, ['module.json'], 10)).rejects.toMatchObject({ problem: 'too_large' })
  expect(layersOf(largeImage)).toHaveLength(1)
})
