import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { defaultUnpackLimits } from '@platform/oci/unpack-limits'
import { unpackImage } from '@platform/oci/unpack'
import { describe, expect, test } from 'vitest'
import { imageOf, imageOfEntries, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'
import { file, folder, hardLink, symlink, unpacked } from './support.ts'

describe('links', () => {
  test.each([
    ['an absolute path', symlink('a/b/link', '/etc/passwd'), '../../etc/passwd'],
    ['the root', symlink('a/b/link', '/'), '../..'],
    ['a path above the root', symlink('a/b/link', '../../../../../etc'), '../../etc'],
    ['a path that returns above the root', symlink('a/b/link', 'c/d/../../../../../x'), '../../x'],
    ['a sibling', symlink('a/b/link', './c'), 'c'],
    ['its folder', symlink('a/b/link', '.'), '.'],
  ])('to %s are rewritten to stay inside the root', async (_name, entry, text) => {
    expect(await unpacked([entry])).toMatchObject({ 'a/b/link': `-> ${text}` })
  })

  test('to the system root lead to the image root', async () => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const name = `out${store.path}/evil`
    const image = await imageOfEntries(client, [symlink('out', '/'), file(name, 'evil')])
    const root = await unpackImage(client, image, join(store.path, 'store'))
    expect(await readFile(join(root, store.path, 'evil'), 'utf8')).toBe('evil')
    await expect(stat(join(store.path, 'evil'))).rejects.toThrow('ENOENT')
  })

  test.each([
    ['in the same layer', [[symlink('up', '../../../..'), file('up/evil')]]],
    ['in an earlier layer', [[symlink('up', '../../../..')], [file('up/evil')]]],
    [
      'in two steps',
      [
        [symlink('one', 'two/..'), symlink('two', '..')],
        [symlink('up', '..'), file('one/up/evil')],
      ],
    ],
  ])('upwards %s are followed inside the root', async (_name, layers) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    await unpackImage(client, await imageOfEntries(client, ...layers), join(store.path, 'store'))
    const found = Object.keys(await readTree(store.path)).filter((path) => path.endsWith('evil'))
    expect(found).toEqual([expect.stringMatching(/^store\/sha256-[0-9a-f]+\/root\//)])
  })
})

/** Invalid layers, and the expected message. */
const hostile: [name: string, layers: RawEntry[][], message: RegExp][] = [
  ['a path above the root', [[file('../evil')]], /The path "\.\.\/evil" is invalid/],
  ['a path that returns above the root', [[file('a/../../evil')]], /is invalid/],
  ['a path with a parent segment', [[file('a/../evil')]], /is invalid/],
  ['a path with NUL', [[{ name: 'ä', content: '', pax: { path: 'a\0b' } }]], /is invalid/],
  ['a name of 256 bytes', [[file('a'.repeat(256))]], /is invalid/],
  ['a path that exceeds the system limit', [[file(`${'a'.repeat(200)}/`.repeat(30))]], /cannot be unpacked/],
  ['a hard link above the root', [[hardLink('a', '../../etc/passwd')]], /is invalid/],
  ['a hard link to the system', [[hardLink('a', '/etc/passwd')]], /no file of the image/],
  ['a hard link through a link', [[symlink('x', '/etc'), hardLink('a', 'x/passwd')]], /no file of the image/],
  ['a hard link to a link', [[symlink('b/c/d', '../../x'), hardLink('a', 'b/c/d')]], /no file of the image/],
  ['a hard link to a folder', [[folder('b'), hardLink('a', 'b')]], /no file of the image/],
  ['a hard link to a missing file', [[hardLink('a', 'b')]], /no file of the image/],
  ['a link cycle', [[symlink('a', 'b'), symlink('b', 'a'), file('a/c')]], /contains a link cycle/],
  ['a link to itself', [[symlink('a', 'a'), file('a/c')]], /contains a link cycle/],
  ['a file below a file', [[file('a'), file('a/b')]], /leads through a file/],
  ['a file as the root', [[{ name: './', type: 'file', content: 'x' }]], /leads through|root of an image/],
  ['a link as the root', [[symlink('/', '/etc')]], /root of an image/],
  ['a whiteout of the parent folder', [[file('a/b')], [file('a/.wh...', '')]], /names nothing/],
  ['a whiteout of its own folder', [[file('a/b')], [file('a/.wh..', '')]], /names nothing/],
  ['a whiteout without a name', [[file('a/b')], [file('a/.wh.', '')]], /names nothing/],
  [
    'a sparse file',
    [[{ name: 'GNUSparseFile.0/a', content: 'x', pax: { 'GNU.sparse.major': '1' } }]],
    /unsupported type/,
  ],
  ['a size that is not a number', [[{ name: 'a', content: 'x', pax: { size: 'many' } }]], /broken/],
  ['a negative size', [[{ name: 'a', content: 'x', pax: { size: '-1' } }]], /broken/],
  ['a size beyond the layer', [[{ name: 'a', content: 'x', pax: { size: '9999999' } }]], /broken/],
  [
    'a link with content',
    [[{ name: 'a', type: 'symlink', linkname: 'x', pax: { size: '512' } }]],
    /content but is not a file/,
  ],
  ['a link to NUL', [[{ name: 'a', type: 'symlink', linkname: 'x', pax: { linkpath: '\0' } }]], /broken/],
]

describe('hostile layers', () => {
  test.each(hostile)('with %s are rejected without leftovers', async (_name, layers, message) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const image = await imageOfEntries(client, ...layers)
    const refusal = unpackImage(client, image, join(store.path, 'a', 'store'))
    await expect(refusal).rejects.toMatchObject({
      name: 'RegistryError',
      problem: 'invalid',
      message: expect.stringMatching(message),
    })
    expect(await readdir(store.path, { recursive: true })).toEqual(['a', 'a/store'])
  })

  test('with devices and fifos are unpacked without these', async () => {
    const types = ['character-device', 'block-device', 'fifo'] as const
    expect(
      await unpacked([...types.map((type) => ({ name: type, type, devmajor: 1, devminor: 3 })), file('a')]),
    ).toEqual({
      a: 'a',
    })
  })

  test('with absolute paths are unpacked below the root', async () => {
    expect(await unpacked([file('/etc/passwd')])).toMatchObject({ 'etc/passwd': '/etc/passwd' })
  })
})

const expectRejection = async (tar: Buffer, change: (layer: ReturnType<typeof layerOf>) => object, problem: string) => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const layer = layerOf(tar)
  const image = await imageOf(client, { ...layer, ...change(layer) })
  await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem })
  expect(await readdir(store.path)).toEqual([])
}

describe('rejects', () => {
  test('a layer with another digest than in the configuration', async () => {
    await expectRejection(await tarOf([file('a')]), () => ({ diffId: `sha256:${'0'.repeat(64)}` }), 'invalid')
  })

  test('a layer of an unknown media type', async () => {
    const mediaType = 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip'
    await expectRejection(
      await tarOf([file('a')]),
      ({ descriptor }) => ({ descriptor: { ...descriptor, mediaType } }),
      'invalid',
    )
  })

  test.each([
    ['in its compressed form', (bytes: Buffer) => bytes.subarray(0, -20)],
    ['completely', (bytes: Buffer) => bytes.subarray(0, 0)],
    ['and replaced by text', () => Buffer.from('no archive')],
  ])('a layer that is truncated %s', async (_name, cut) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const whole = layerOf(await tarOf([file('a', 'x'.repeat(100_000))]))
    const bytes = cut(whole.bytes)
    const { digest, size } = await client.putBlob('team/hello', bytes)
    const image = await imageOf(client, { ...whole, descriptor: { ...whole.descriptor, digest, size }, bytes })
    await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem: 'invalid' })
  })

  test('an archive that ends within a file', async () => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const tar = await tarOf([file('a', 'x'.repeat(100_000))])
    const image = await imageOf(client, layerOf(tar.subarray(0, 5000)))
    await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem: 'invalid' })
  })
})

const limited = async (layers: RawEntry[][], limits: { bytes?: number; files?: number }) => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, ...layers)
  try {
    await unpackImage(client, image, store.path, limits)
    return 'unpacked'
  } catch (error) {
    expect(await readdir(store.path)).toEqual([])
    return (error as { problem: string }).problem
  }
}

describe('limits', () => {
  test('apply to the unpacked size of all layers', async () => {
    const half = [file('a', '0'.repeat(2 ** 20))]
    expect(await limited([half, half], { bytes: 2.1 * 2 ** 20 })).toBe('unpacked')
    expect(await limited([half, half], { bytes: 1.9 * 2 ** 20 })).toBe('too_large')
  })

  test('apply to the files and implicit folders of all layers', async () => {
    const three = [file('a'), file('b'), file('c')]
    expect(await limited([three, three], { files: 6 })).toBe('unpacked')
    expect(await limited([three, three], { files: 5 })).toBe('too_large')
    expect(await limited([[file('a/b/c/d')]], { files: 4 })).toBe('unpacked')
    expect(await limited([[file('a/b/c/d')]], { files: 3 })).toBe('too_large')
  })

  test('are 2 GiB and 100,000 files by default', () => {
    expect(defaultUnpackLimits()).toEqual({ bytes: 2_147_483_648, files: 100_000 })
  })
})
