import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { defaultUnpackLimits } from '@platform/oci/unpack-limits'
import { unpackImage } from '@platform/oci/unpack'
import { describe, expect, test } from 'vitest'
import { imageOf, imageOfEntries, layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'

const file = (name: string, content = name): RawEntry => ({ name, content })
const folder = (name: string): RawEntry => ({ name, type: 'directory' })
const symlink = (name: string, linkname: string): RawEntry => ({ name, type: 'symlink', linkname })
const hardLink = (name: string, linkname: string): RawEntry => ({ name, type: 'link', linkname })

async function unpacked(...layers: RawEntry[][]): Promise<Record<string, string>> {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const root = await unpackImage(client, await imageOfEntries(client, ...layers), join(store.path, 'store'))
  // Read before the store is removed.
  return await readTree(root)
}

describe('links stay inside', () => {
  test.each([
    ['an absolute link', symlink('a/b/link', '/etc/passwd'), '../../etc/passwd'],
    ['an absolute link to the root', symlink('a/b/link', '/'), '../..'],
    ['a link that leads above the root', symlink('a/b/link', '../../../../../etc'), '../../etc'],
    ['a link that turns round', symlink('a/b/link', 'c/d/../../../../../x'), '../../x'],
    ['a link beside itself', symlink('a/b/link', './c'), 'c'],
    ['a link to its own folder', symlink('a/b/link', '.'), '.'],
  ])('%s is written so that it leads inside the root', async (_name, entry, text) => {
    expect(await unpacked([entry])).toMatchObject({ 'a/b/link': `-> ${text}` })
  })

  test('what is written through a link to the root of the system lands in the root of the image', async () => {
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
  ])('a link upwards %s is followed inside the root', async (_name, layers) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    await unpackImage(client, await imageOfEntries(client, ...layers), join(store.path, 'store'))
    const found = Object.keys(await readTree(store.path)).filter((path) => path.endsWith('evil'))
    expect(found).toEqual([expect.stringMatching(/^store\/sha256-[0-9a-f]+\/root\//)])
  })
})

/** Layers that no honest builder makes, and what is said of each. */
const hostile: [name: string, layers: RawEntry[][], message: RegExp][] = [
  ['a path upwards', [[file('../evil')]], /The path "\.\.\/evil" is none/],
  ['a path upwards in its middle', [[file('a/../../evil')]], /is none/],
  ['a path upwards that stays inside', [[file('a/../evil')]], /is none/],
  ['a path with a NUL', [[{ name: 'ä', content: '', pax: { path: 'a\0b' } }]], /is none/],
  ['a name of 256 bytes', [[file('a'.repeat(256))]], /is none/],
  ['a path longer than the system takes', [[file(`${'a'.repeat(200)}/`.repeat(30))]], /cannot be unpacked/],
  ['a hard link upwards', [[hardLink('a', '../../etc/passwd')]], /is none/],
  ['a hard link to the system', [[hardLink('a', '/etc/passwd')]], /no file of the image/],
  ['a hard link through a link', [[symlink('x', '/etc'), hardLink('a', 'x/passwd')]], /no file of the image/],
  ['a hard link to a link', [[symlink('b/c/d', '../../x'), hardLink('a', 'b/c/d')]], /no file of the image/],
  ['a hard link to a folder', [[folder('b'), hardLink('a', 'b')]], /no file of the image/],
  ['a hard link to nothing', [[hardLink('a', 'b')]], /no file of the image/],
  ['links in a circle', [[symlink('a', 'b'), symlink('b', 'a'), file('a/c')]], /leads in a circle/],
  ['a link to itself', [[symlink('a', 'a'), file('a/c')]], /leads in a circle/],
  ['a file in a file', [[file('a'), file('a/b')]], /leads through a file/],
  ['a file as the root', [[{ name: './', type: 'file', content: 'x' }]], /leads through|root of an image/],
  ['a link as the root', [[symlink('/', '/etc')]], /root of an image/],
  ['a whiteout of the folder above', [[file('a/b')], [file('a/.wh...', '')]], /names nothing/],
  ['a whiteout of its own folder', [[file('a/b')], [file('a/.wh..', '')]], /names nothing/],
  ['a whiteout of no name', [[file('a/b')], [file('a/.wh.', '')]], /names nothing/],
  ['a sparse file', [[{ name: 'GNUSparseFile.0/a', content: 'x', pax: { 'GNU.sparse.major': '1' } }]], /of a kind/],
  ['a size that is no number', [[{ name: 'a', content: 'x', pax: { size: 'many' } }]], /broken/],
  ['a negative size', [[{ name: 'a', content: 'x', pax: { size: '-1' } }]], /broken/],
  ['a size beyond its layer', [[{ name: 'a', content: 'x', pax: { size: '9999999' } }]], /broken/],
  [
    'a link with content',
    [[{ name: 'a', type: 'symlink', linkname: 'x', pax: { size: '512' } }]],
    /content and is no file/,
  ],
  ['a link of no text', [[{ name: 'a', type: 'symlink', linkname: 'x', pax: { linkpath: '\0' } }]], /broken/],
]

describe('hostile layers', () => {
  test.each(hostile)('%s is refused, and nothing is left', async (_name, layers, message) => {
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

  test('devices and fifos are not made', async () => {
    const types = ['character-device', 'block-device', 'fifo'] as const
    expect(
      await unpacked([...types.map((type) => ({ name: type, type, devmajor: 1, devminor: 3 })), file('a')]),
    ).toEqual({
      a: 'a',
    })
  })

  test('an absolute path is one of the image', async () => {
    expect(await unpacked([file('/etc/passwd')])).toMatchObject({ 'etc/passwd': '/etc/passwd' })
  })
})

const refused = async (tar: Buffer, change: (layer: ReturnType<typeof layerOf>) => object, problem: string) => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const layer = layerOf(tar)
  const image = await imageOf(client, { ...layer, ...change(layer) })
  await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem })
  expect(await readdir(store.path)).toEqual([])
}

describe('what a registry has is not believed', () => {
  test('a layer whose content is not what the configuration says is refused', async () => {
    await refused(await tarOf([file('a')]), () => ({ diffId: `sha256:${'0'.repeat(64)}` }), 'invalid')
  })

  test('a layer in a form that is not known is refused', async () => {
    const mediaType = 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip'
    await refused(
      await tarOf([file('a')]),
      ({ descriptor }) => ({ descriptor: { ...descriptor, mediaType } }),
      'invalid',
    )
  })

  test.each([
    ['in its compressed form', (bytes: Buffer) => bytes.subarray(0, -20)],
    ['to nothing', (bytes: Buffer) => bytes.subarray(0, 0)],
    ['and is no archive', () => Buffer.from('no archive')],
  ])('a layer that is cut short %s is refused', async (_name, cut) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const whole = layerOf(await tarOf([file('a', 'x'.repeat(100_000))]))
    const bytes = cut(whole.bytes)
    const { digest, size } = await client.putBlob('team/hello', bytes)
    const image = await imageOf(client, { ...whole, descriptor: { ...whole.descriptor, digest, size }, bytes })
    await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem: 'invalid' })
  })

  test('an archive that ends within a file is refused', async () => {
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
  test('a bomb is not unpacked further than the limit, over all layers', async () => {
    const half = [file('a', '0'.repeat(2 ** 20))]
    expect(await limited([half, half], { bytes: 2.1 * 2 ** 20 })).toBe('unpacked')
    expect(await limited([half, half], { bytes: 1.9 * 2 ** 20 })).toBe('too_large')
  })

  test('files are counted over all layers, and so are folders that no entry names', async () => {
    const three = [file('a'), file('b'), file('c')]
    expect(await limited([three, three], { files: 6 })).toBe('unpacked')
    expect(await limited([three, three], { files: 5 })).toBe('too_large')
    expect(await limited([[file('a/b/c/d')]], { files: 4 })).toBe('unpacked')
    expect(await limited([[file('a/b/c/d')]], { files: 3 })).toBe('too_large')
  })

  test('they are 2 GiB and 100,000 files where nobody says otherwise', () => {
    expect(defaultUnpackLimits()).toEqual({ bytes: 2_147_483_648, files: 100_000 })
  })
})
