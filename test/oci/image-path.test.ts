import { mkdir, readFile as readDisk, realpath } from 'node:fs/promises'
import { join, posix, resolve, sep } from 'node:path'
import { RegistryError } from '@platform/oci/error'
import { readFile } from '@platform/oci/image'
import { normalizePath, isBelow, parentOf, whiteoutOf } from '@platform/oci/image-path'
import { unpackImage } from '@platform/oci/unpack'
import { array, assert, asyncProperty, constantFrom, nat, oneof, record, string, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { imageOfEntries, type RawEntry } from '../support/image-layers.ts'
import { rounds } from '../support/long.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'

async function unlessInvalid<Value>(work: () => Value | Promise<Value>): Promise<Value | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RegistryError && error.problem === 'invalid') return undefined
    throw error
  }
}

const segment = oneof(constantFrom('a', 'b', 'c', '.', '..', '', '.wh.a', '.wh..wh..opq', '.wh...', '.wh.'), string())
// The unit `binary` includes the same characters, but takes a second to create.
const codePoints = nat(0x10_ff_ff).map((code) => String.fromCodePoint(code))
const anyPath = oneof(
  string({ unit: codePoints }),
  array(segment, { maxLength: 6 }).map((parts) => parts.join('/')),
)

test('keeps the path of any entry inside the root, or rejects it', () =>
  assert(
    asyncProperty(anyPath, async (name) => {
      const path = await unlessInvalid(() => normalizePath(name))
      if (path === undefined) return
      expect(resolve('/root', path) === '/root' || resolve('/root', path).startsWith('/root/')).toBe(true)
      expect(path).toBe(posix.normalize(`/${path}`).slice(1))
      expect(normalizePath(path)).toBe(path)
      expect(path === '' || isBelow(path, parentOf(path))).toBe(true)
      expect(parentOf(path)).toBe(path.split('/').slice(0, -1).join('/'))
    }),
    { seed: 1, numRuns: rounds(300, 2000) },
  ))

test('resolves a whiteout inside its folder, or rejects it', () =>
  assert(
    asyncProperty(anyPath, async (name) => {
      const path = await unlessInvalid(() => normalizePath(name))
      const whiteout = path === undefined ? undefined : await unlessInvalid(() => whiteoutOf(path))
      if (path === undefined || whiteout === undefined || whiteout.kind === 'nothing') return
      expect(normalizePath(whiteout.path)).toBe(whiteout.path)
      if (whiteout.kind === 'below') expect(whiteout.path).toBe(parentOf(path))
      else expect([parentOf(whiteout.path), whiteout.path !== '']).toEqual([parentOf(path), true])
    }),
    { seed: 2, numRuns: rounds(300, 2000) },
  ))

const names = constantFrom('a', 'b', 'c')
const path = array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
const folder = array(names, { maxLength: 2 }).map((parts) => parts.map((each) => `${each}/`).join(''))
const entry = oneof(
  record({ name: path, content: constantFrom('1', '2', '3') }),
  record({ name: path, type: constantFrom('directory' as const, 'fifo' as const) }),
  tuple(folder, names).map(([parent, name]) => ({ name: `${parent}.wh.${name}` })),
  folder.map((parent) => ({ name: `${parent}.wh..wh..opq` })),
)

const layersOf = (arbitrary: typeof entry) =>
  array(array<RawEntry>(arbitrary, { maxLength: 6 }), { minLength: 1, maxLength: 4 })

const letters = ['a', 'b', 'c']
const append = (paths: string[]): string[] => paths.flatMap((each) => letters.map((letter) => `${each}/${letter}`))
const allPaths = [...letters, ...append(letters), ...append(append(letters))]

test('reads the same files from an image as unpacking creates', () =>
  assert(
    asyncProperty(layersOf(entry), async (layers) => {
      await using store = await temporaryFolder()
      const client = memoryRegistry()
      const image = await imageOfEntries(client, ...layers)
      const root = await unlessInvalid(() => unpackImage(client, image, store.path))
      if (root === undefined) return
      for (const path of allPaths) {
        const unpackedText = await readDisk(join(root, path), 'utf8').catch(() => undefined)
        const read = await readFile(client, image, [path], 100)
        expect([path, read?.toString()]).toEqual([path, unpackedText])
      }
    }),
    { seed: 4, numRuns: rounds(40, 300) },
  ))

const linkText = array(constantFrom('..', '..', 'a', 'b', 'c', '', '.'), { minLength: 1, maxLength: 6 }).map(
  (parts) => parts.join('/') || '/',
)
const entryOrLink = oneof(
  entry,
  record({ name: path, type: constantFrom('symlink' as const), linkname: linkText }),
  record({ name: path, type: constantFrom('symlink' as const), linkname: linkText }),
  record({ name: path, type: constantFrom('link' as const), linkname: path }),
)

test('writes nothing outside of the root, and creates no link that leaves it', () =>
  assert(
    asyncProperty(layersOf(entryOrLink as typeof entry), async (layers) => {
      await using outsideFolder = await temporaryFolder()
      const store = join(outsideFolder.path, 'x', 'y', 'store')
      const client = memoryRegistry()
      const root = await unlessInvalid(async () => unpackImage(client, await imageOfEntries(client, ...layers), store))
      const home = root === undefined ? undefined : join(root, '..')
      const writtenPaths = Object.keys(await readTree(outsideFolder.path))
      const expected = ['x', 'x/y', 'x/y/store'].map((each) => join(outsideFolder.path, each))
      if (root !== undefined && home !== undefined) expected.push(home, root, join(home, 'done'))
      const unexpectedPaths = writtenPaths
        .map((each) => resolve(outsideFolder.path, each))
        .filter((each) => !expected.includes(each) && !(root && each.startsWith(`${root}${sep}`)))
      expect(unexpectedPaths).toEqual([])
      if (root === undefined || home === undefined) return
      // Creates possible targets, so that links outside of the root resolve.
      const foldersAbove = [home, store, join(store, '..'), join(store, '../..'), outsideFolder.path]
      for (const each of foldersAbove)
        for (const name of letters) await mkdir(join(each, name, 'a/b'), { recursive: true })
      for (const [name, content] of Object.entries(await readTree(root))) {
        if (!content.startsWith('-> ')) continue
        const target = await realpath(join(root, name)).catch(() => root)
        expect(target === root || target.startsWith(`${root}${sep}`)).toBe(true)
      }
    }),
    { seed: 5, numRuns: rounds(60, 500) },
  ))
