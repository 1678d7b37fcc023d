import { lstat, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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

describe('layers lie over each other', () => {
  test('a file of an upper layer takes the place of a lower one, and the rest stays', async () => {
    const tree = await unpacked([file('a', 'old'), file('b')], [file('a', 'new'), file('c/d')])
    expect(tree).toEqual({ a: 'new', b: 'b', 'c/': '', 'c/d': 'c/d' })
  })

  test('a whiteout takes a file or a whole folder of the layers below away', async () => {
    const tree = await unpacked([file('a'), file('d/e/f'), file('d/g')], [file('.wh.a', ''), file('d/.wh.e', '')])
    expect(tree).toEqual({ 'd/': '', 'd/g': 'd/g' })
  })

  test('an opaque whiteout takes what is below away, and keeps what its own layer has, whatever the order', async () => {
    const below = [file('d/old'), file('d/e/old'), file('out')]
    const kept = { 'd/': '', 'd/e/': '', 'd/e/new': 'd/e/new', 'd/new': 'd/new', out: 'out' }
    expect(await unpacked(below, [file('d/.wh..wh..opq', ''), file('d/new'), file('d/e/new')])).toEqual(kept)
    expect(await unpacked(below, [file('d/new'), file('d/e/new'), file('d/.wh..wh..opq', '')])).toEqual(kept)
  })

  test('a whiteout spares what its own layer has written', async () => {
    const tree = await unpacked([file('d/old')], [folder('d'), file('d/new'), file('.wh.d', '')])
    expect(tree).toEqual({ 'd/': '', 'd/new': 'd/new' })
  })

  test('a whiteout in a folder that its own layer makes a file is nothing', async () => {
    expect(await unpacked([file('d/a')], [file('d'), file('d/.wh.a', '')])).toEqual({ d: 'd' })
  })

  test('a whiteout of what is not there is nothing, and so is the bookkeeping of AUFS', async () => {
    expect(await unpacked([file('x/y/.wh.z', ''), file('.wh..wh.plnk', ''), file('a')])).toEqual({ a: 'a' })
  })

  test.each([
    ['a file by a folder', [file('x')], [folder('x'), file('x/y')], { 'x/': '', 'x/y': 'x/y' }],
    ['a folder by a file', [file('x/y')], [file('x')], { x: 'x' }],
    [
      'a link to a folder by a folder',
      [file('d/e'), symlink('x', 'd')],
      [folder('x')],
      { 'd/': '', 'd/e': 'd/e', 'x/': '' },
    ],
    [
      'a link by a file, without writing where it leads',
      [file('d'), symlink('x', 'd')],
      [file('x')],
      { d: 'd', x: 'x' },
    ],
    ['a file by a device, which is not made', [file('x')], [{ name: 'x', type: 'character-device' } as const], {}],
  ])('%s is replaced', async (_name, lower, upper, tree) => {
    expect(await unpacked(lower, upper)).toEqual(tree)
  })

  test('a file of two names that an upper layer overwrites keeps its content under the other', async () => {
    const tree = await unpacked([file('a', 'old'), hardLink('b', 'a')], [file('a', 'new')])
    expect(tree).toEqual({ a: 'new', b: 'old' })
  })

  test('a link of two names that are one changes nothing', async () => {
    expect(await unpacked([file('a'), symlink('b', '.'), hardLink('b/a', 'a')])).toEqual({ a: 'a', b: '-> .' })
  })

  test('a link to a folder above is followed', async () => {
    const tree = await unpacked([symlink('a/b/link', '../c'), file('a/b/link/new')])
    expect(tree).toMatchObject({ 'a/c/new': 'a/b/link/new' })
  })

  test('a file is written through a link to a folder of a lower layer', async () => {
    const tree = await unpacked([file('usr/lib/a'), symlink('lib', 'usr/lib')], [file('lib/b')])
    expect(tree).toEqual({
      'usr/': '',
      'usr/lib/': '',
      'usr/lib/a': 'usr/lib/a',
      'usr/lib/b': 'lib/b',
      lib: '-> usr/lib',
    })
  })

  test.each(['tar+gzip', 'tar+zstd', 'tar'] as const)('layers of %s are read', async (form) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const image = await imageOf(client, layerOf(await tarOf([file('a')]), form))
    expect(await readTree(await unpackImage(client, image, store.path))).toEqual({ a: 'a' })
  })

  test('of modes only whether a file is a program is kept', async () => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const entries = [
      { ...file('setuid'), mode: 0o4755 },
      { ...file('plain'), mode: 0o2666 },
      { ...folder('sticky'), mode: 0o1777 },
    ]
    const root = await unpackImage(client, await imageOfEntries(client, entries), store.path)
    const modes = entries.map(async ({ name }) => ((await stat(join(root, name))).mode & 0o7777).toString(8))
    expect(await Promise.all(modes)).toEqual(['755', '644', '755'])
  })
})

test('an unpacked image is found again without a request', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')])
  const root = await unpackImage(client, image, store.path)
  client.blobs.clear()
  expect(await unpackImage(client, image, store.path)).toBe(root)
  expect(root.startsWith(store.path)).toBe(true)
  expect((await lstat(root)).isDirectory()).toBe(true)
})

test('two that unpack the same at once share the work and both get the whole', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')], [file('b')])
  const roots = await Promise.all([1, 2, 3].map(() => unpackImage(client, image, store.path)))
  expect(new Set(roots).size).toBe(1)
  expect(await readTree(roots[0] ?? '')).toEqual({ a: 'a', b: 'b' })
  expect(await readdir(store.path)).toHaveLength(1)
})

test('who failed to unpack may try again', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')])
  const blobs = new Map(client.blobs)
  client.blobs.clear()
  await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem: 'not_found' })
  for (const [key, bytes] of blobs) client.blobs.set(key, bytes)
  expect(await readTree(await unpackImage(client, image, store.path))).toEqual({ a: 'a' })
})

test('what a machine without power has left under the name of an image is not taken for it', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')])
  const root = join(store.path, image.digest.replace(':', '-'), 'root')
  await mkdir(root, { recursive: true })
  await writeFile(join(root, 'a'), '')
  expect(await unpackImage(client, image, store.path)).toBe(root)
  expect(await readTree(root)).toEqual({ a: 'a' })
  expect(await readdir(store.path)).toHaveLength(1)
})
