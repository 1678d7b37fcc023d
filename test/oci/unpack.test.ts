import { lstat, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unpackImage } from '@platform/oci/unpack'
import { describe, expect, test } from 'vitest'
import { imageOf, imageOfEntries, layerOf, tarOf } from '../support/image-layers.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'
import { file, folder, hardLink, symlink, unpacked } from './support.ts'

const unpacker = fileURLToPath(import.meta.resolve('./unpacker.ts'))
const start = (store: string, how: 'whole' | 'stuck') =>
  new Program(process.execPath, [unpacker, store, how], { cwd: store, env: {} })

test('repeats the work of a killed process, and ignores its draft', async () => {
  await using store = await temporaryFolder()
  const killed = start(store.path, 'stuck')
  await killed.writes(/stuck/)
  await killed.kill()
  const [draft, ...others] = await readdir(store.path)
  expect(draft).toMatch(/^sha256-[0-9a-f]{64}\.\d+-0\.tmp$/)
  expect(others).toEqual([])
  await using second = start(store.path, 'whole')
  const [root] = await second.writes(/\S+\/root/)
  expect(await second.ended).toMatchObject({ exitCode: 0 })
  expect(await readdir(store.path)).toEqual([draft?.slice(0, 'sha256-'.length + 64)])
  expect(Object.keys(await readTree(root))).toHaveLength(211)
})

test('does not remove the draft of another process', async () => {
  await using store = await temporaryFolder()
  await using slow = start(store.path, 'stuck')
  await slow.writes(/stuck/)
  await using fast = start(store.path, 'whole')
  await fast.writes(/\S+\/root/)
  expect(await readdir(store.path)).toHaveLength(2)
  const draft = (await readdir(store.path)).find((name) => name.endsWith('.tmp')) ?? ''
  expect(Object.keys(await readTree(join(store.path, draft, 'root')))).toHaveLength(210)
})

test('several processes can unpack the same image concurrently', async () => {
  await using store = await temporaryFolder()
  await using processes = new AsyncDisposableStack()
  const programs = [1, 2, 3, 4].map(() => processes.use(start(store.path, 'whole')))
  const roots = await Promise.all(programs.map(async (program) => (await program.writes(/\S+\/root/))[0]))
  expect(new Set(roots).size).toBe(1)
  expect(Object.keys(await readTree(roots[0] ?? ''))).toHaveLength(211)
  const ends = await Promise.all(programs.map(({ ended }) => ended))
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
  expect(await readdir(store.path)).toHaveLength(1)
})

describe('layers', () => {
  test('replace and add files', async () => {
    const tree = await unpacked([file('a', 'old'), file('b')], [file('a', 'new'), file('c/d')])
    expect(tree).toEqual({ a: 'new', b: 'b', 'c/': '', 'c/d': 'c/d' })
  })

  test('remove files and folders with whiteouts', async () => {
    const tree = await unpacked([file('a'), file('d/e/f'), file('d/g')], [file('.wh.a', ''), file('d/.wh.e', '')])
    expect(tree).toEqual({ 'd/': '', 'd/g': 'd/g' })
  })

  test('replace folders with opaque whiteouts, in any order of entries', async () => {
    const below = [file('d/old'), file('d/e/old'), file('out')]
    const kept = { 'd/': '', 'd/e/': '', 'd/e/new': 'd/e/new', 'd/new': 'd/new', out: 'out' }
    expect(await unpacked(below, [file('d/.wh..wh..opq', ''), file('d/new'), file('d/e/new')])).toEqual(kept)
    expect(await unpacked(below, [file('d/new'), file('d/e/new'), file('d/.wh..wh..opq', '')])).toEqual(kept)
  })

  test('keep files of the same layer despite a whiteout', async () => {
    const tree = await unpacked([file('d/old')], [folder('d'), file('d/new'), file('.wh.d', '')])
    expect(tree).toEqual({ 'd/': '', 'd/new': 'd/new' })
  })

  test('ignore a whiteout in a folder that the same layer makes a file', async () => {
    expect(await unpacked([file('d/a')], [file('d'), file('d/.wh.a', '')])).toEqual({ d: 'd' })
  })

  test('ignore whiteouts of missing files, and AUFS metadata', async () => {
    expect(await unpacked([file('x/y/.wh.z', ''), file('.wh..wh.plnk', ''), file('a')])).toEqual({ a: 'a' })
  })

  test.each([
    ['a file with a folder', [file('x')], [folder('x'), file('x/y')], { 'x/': '', 'x/y': 'x/y' }],
    ['a folder with a file', [file('x/y')], [file('x')], { x: 'x' }],
    [
      'a link to a folder with a folder',
      [file('d/e'), symlink('x', 'd')],
      [folder('x')],
      { 'd/': '', 'd/e': 'd/e', 'x/': '' },
    ],
    ['a link with a file, without following it', [file('d'), symlink('x', 'd')], [file('x')], { d: 'd', x: 'x' }],
    ['a file with a device, which is not created', [file('x')], [{ name: 'x', type: 'character-device' } as const], {}],
  ])('replace %s', async (_name, lower, upper, tree) => {
    expect(await unpacked(lower, upper)).toEqual(tree)
  })

  test('replace one of two hard links, and keep the other', async () => {
    const tree = await unpacked([file('a', 'old'), hardLink('b', 'a')], [file('a', 'new')])
    expect(tree).toEqual({ a: 'new', b: 'old' })
  })

  test('may link a file to itself', async () => {
    expect(await unpacked([file('a'), symlink('b', '.'), hardLink('b/a', 'a')])).toEqual({ a: 'a', b: '-> .' })
  })

  test('may contain links to a parent folder', async () => {
    const tree = await unpacked([symlink('a/b/link', '../c'), file('a/b/link/new')])
    expect(tree).toMatchObject({ 'a/c/new': 'a/b/link/new' })
  })

  test('write files through links to folders of lower layers', async () => {
    const tree = await unpacked([file('usr/lib/a'), symlink('lib', 'usr/lib')], [file('lib/b')])
    expect(tree).toEqual({
      'usr/': '',
      'usr/lib/': '',
      'usr/lib/a': 'usr/lib/a',
      'usr/lib/b': 'lib/b',
      lib: '-> usr/lib',
    })
  })

  test.each(['tar+gzip', 'tar+zstd', 'tar'] as const)('of type %s are supported', async (form) => {
    await using store = await temporaryFolder()
    const client = memoryRegistry()
    const image = await imageOf(client, layerOf(await tarOf([file('a')]), form))
    expect(await readTree(await unpackImage(client, image, store.path))).toEqual({ a: 'a' })
  })

  test('keep only the executable bit of file modes', async () => {
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

test('finds an unpacked image without a request', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')])
  const root = await unpackImage(client, image, store.path)
  client.blobs.clear()
  expect(await unpackImage(client, image, store.path)).toBe(root)
  expect(root.startsWith(store.path)).toBe(true)
  expect((await lstat(root)).isDirectory()).toBe(true)
})

test('unpacks an image once for concurrent callers', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')], [file('b')])
  const roots = await Promise.all([1, 2, 3].map(() => unpackImage(client, image, store.path)))
  expect(new Set(roots).size).toBe(1)
  expect(await readTree(roots[0] ?? '')).toEqual({ a: 'a', b: 'b' })
  expect(await readdir(store.path)).toHaveLength(1)
})

test('can be repeated after a failure', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const image = await imageOfEntries(client, [file('a')])
  const blobs = new Map(client.blobs)
  client.blobs.clear()
  await expect(unpackImage(client, image, store.path)).rejects.toMatchObject({ problem: 'not_found' })
  for (const [key, bytes] of blobs) client.blobs.set(key, bytes)
  expect(await readTree(await unpackImage(client, image, store.path))).toEqual({ a: 'a' })
})

test('replaces an incomplete folder that a power failure has left', async () => {
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
