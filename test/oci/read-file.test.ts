import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { digestOf } from '@platform/oci/digest'
import { readFile } from '@platform/oci/image'
import { layersOf } from '@platform/oci/layer'
import { type Image, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { imageOf, imageOfEntries, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { file } from './support.ts'

const repository = 'team/hello'
const [blockBytes, mebibyte] = [512, 2 ** 20]

/** A tar entry with global PAX attributes. */
async function globalAttributes(attributes: number): Promise<Buffer> {
  const records = Array.from({ length: attributes }, (_, index) => ` ${index.toString(36)}=\n`)
  const content = records.map((record) => `${record.length + String(record.length + 1).length}${record}`).join('')
  const archive = (await tarOf([{ name: 'all', content }])).subarray(0, -2 * blockBytes)
  archive.write('g', 156)
  const sum = archive.subarray(0, blockBytes).reduce((total, byte, at) => total + (at < 148 || at > 155 ? byte : 32), 0)
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return archive
}

const described = (name: string, pax: Record<string, string> = { comment: 'x' }): RawEntry => ({ name, pax })

async function readTar(tar: Buffer): Promise<string | undefined> {
  const client = memoryRegistry()
  const image = await imageOf(client, layerOf(tar))
  return (await readFile(client, image, ['/module.json'], 1000))?.toString()
}

test.each([
  ['50,000 global attributes', 50_000, /has more than 100 attributes/, 'invalid'],
  ['500,000 global attributes', 500_000, /too much metadata/, 'too_large'],
] as const)('rejects a layer with %s', async (_name, attributes, message, problem) => {
  const files = await tarOf(Array.from({ length: 100 }, (_, index) => described(`file-${index}`)))
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
  const folder = 'deep/'.repeat(60)
  const files = Array.from({ length: 1000 }, (_, index) => described(`${folder}${index}`, attributes))
  const large = { name: 'large', content: Buffer.alloc(3 * mebibyte) }
  expect(await readTar(await tarOf([...files, large, { name: 'module.json', content: '{}' }]))).toBe('{}')
})
/** A registry that sends each layer on demand, and images with one layer of a declared size. */
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
    const large: Image = { ...image, manifest: { ...image.manifest, layers } }
    return readFile({ ...registry, blob }, large, ['module.json'], 10)
  }
  /** The sizes of the requested layers. */
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
  const client = memoryRegistry()
  const image = await imageOfEntries(client, ...layers)
  return (await readFile(client, image, paths, 1000))?.toString()
}

describe('reads a file', () => {
  test.each<[string, string | undefined, RawEntry[][]]>([
    ['from the only layer', 'm', [[file('module.json', 'm')]]],
    [
      'from the topmost layer that has it',
      'new',
      [[file('module.json', 'old')], [file('module.json', 'new')], [file('x')]],
    ],
    ['from a lower layer', 'm', [[file('module.json', 'm')], [file('x')], [file('.wh.x', '')]]],
    ['with an absolute name', 'm', [[file('/module.json', 'm')]]],
    ['with a leading dot', 'm', [[file('./module.json', 'm')]]],
    ['that does not exist', undefined, [[file('other')]]],
    ['that a whiteout removes', undefined, [[file('module.json')], [file('.wh.module.json', '')]]],
    ['that an opaque whiteout removes', undefined, [[file('module.json')], [file('.wh..wh..opq', '')]]],
    [
      'from the layer of an opaque whiteout',
      'n',
      [[file('module.json')], [file('module.json', 'n'), file('.wh..wh..opq', '')]],
    ],
    ['from the last of two entries', 'two', [[file('module.json', 'one'), file('module.json', 'two')]]],
    ['replaced by a folder', undefined, [[file('module.json')], [{ name: 'module.json', type: 'directory' }]]],
    [
      'replaced by a symbolic link',
      undefined,
      [[file('module.json')], [{ name: 'module.json', type: 'symlink', linkname: 'x' }]],
    ],
    [
      'replaced by a hard link',
      undefined,
      [[file('module.json'), { name: 'module.json', type: 'link', linkname: 'x' }]],
    ],
    ['that is empty', '', [[file('module.json', 'old')], [file('module.json', '')]]],
  ])('%s', async (_name, content, layers) => {
    expect(await read(['/module.json'], ...layers)).toBe(content)
  })

  test.each<[string, string | undefined, RawEntry[][]]>([
    ['exists', 'm', [[file('app/module.json', 'm')], [{ name: 'app', type: 'directory' }]]],
    ['was removed', undefined, [[file('app/module.json')], [file('.wh.app', '')]]],
    ['was emptied', undefined, [[file('app/module.json')], [file('app/.wh..wh..opq', '')]]],
    ['became a file', undefined, [[file('app/module.json')], [file('app')], [{ name: 'app', type: 'directory' }]]],
    ['became a link', undefined, [[file('app/module.json')], [{ name: 'app', type: 'symlink', linkname: 'x' }]]],
    [
      'has a similar name as a removed one',
      'm',
      [[file('app/module.json', 'm')], [file('.wh.ap', ''), file('appl/.wh..wh..opq', '')]],
    ],
  ])('in a folder that %s', async (_name, content, layers) => {
    expect(await read(['/app/module.json'], ...layers)).toBe(content)
  })

  test('by the first path of the topmost layer that has any', async () => {
    const both = [file('app/module.json', 'app'), file('module.json', 'root')]
    expect(await read(['/module.json', '/app/module.json'], both)).toBe('root')
    expect(await read(['/app/module.json', '/module.json'], both)).toBe('app')
    expect(await read(['/module.json', '/app/module.json'], both, [file('app/module.json', 'top')])).toBe('top')
    expect(await read(['/module.json', '/app/module.json'], both, [file('.wh.module.json', '')])).toBe('app')
  })

  test('without fetching lower layers', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('a')], [file('module.json', 'm')])
    client.blobs.delete(`${repository} ${image.manifest.layers[0]?.digest}`)
    expect((await readFile(client, image, ['/module.json'], 10))?.toString()).toBe('m')
    await expect(readFile(client, image, ['/a'], 10)).rejects.toMatchObject({ problem: 'not_found' })
    const hidden = await imageOfEntries(client, [file('a', 'deep')], [file('.wh.a', '')])
    client.blobs.delete(`${repository} ${hidden.manifest.layers[0]?.digest}`)
    expect(await readFile(client, hidden, ['/a'], 10)).toBeUndefined()
  })

  test('up to a size limit', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('module.json', '12345')])
    expect((await readFile(client, image, ['module.json'], 5))?.toString()).toBe('12345')
    const refusal = readFile(client, image, ['module.json'], 4)
    await expect(refusal).rejects.toMatchObject({
      problem: 'too_large',
      message: '/module.json has more than 4 bytes.',
    })
  })

  test('and rejects a broken layer or one with another digest', async () => {
    const client = memoryRegistry()
    const layer = layerOf(await tarOf([file('x')]))
    const other = await imageOf(client, { ...layer, diffId: digestOf('other') })
    await expect(readFile(client, other, ['y'], 10)).rejects.toMatchObject({ problem: 'invalid' })
    const cut = await imageOf(client, layerOf(Buffer.from('no archive')))
    await expect(readFile(client, cut, ['y'], 10)).rejects.toMatchObject({ problem: 'invalid' })
  })

  test('and limits the unpacked size of a gzip bomb', async () => {
    const client = memoryRegistry()
    // 16 members of 160 MiB exceed 2 GiB in total.
    const member = gzipSync(Buffer.alloc(160 * 2 ** 20))
    const bytes = Buffer.concat(Array<Buffer>(16).fill(member))
    const descriptor = { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length }
    const image = await imageOf(client, { descriptor, diffId: digestOf('bomb'), bytes })
    await expect(readFile(client, image, ['y'], 10)).rejects.toMatchObject({ problem: 'too_large' })
  })

  test('and does not fetch a layer of more than 256 MiB', async () => {
    const client = memoryRegistry()
    const image = await imageOfEntries(client, [file('module.json')])
    const [layer] = image.manifest.layers
    const large: Image = { ...image, manifest: { ...image.manifest, layers: [{ ...layer!, size: 256 * 2 ** 20 + 1 }] } }
    await expect(readFile(client, large, ['module.json'], 10)).rejects.toMatchObject({ problem: 'too_large' })
    expect(layersOf(large)).toHaveLength(1)
  })
})
