import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultUnpackLimits } from '@platform/oci/layer-limits'
import { describe, expect, test } from 'vitest'
import { layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { Program } from '../support/program.ts'
import { readTree } from '../support/read-tree.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { file, folder, hardLink, storeImage, symlink, unpackLayers } from './support.ts'

describe('processes', () => {
  const unpacker = fileURLToPath(import.meta.resolve('./unpacker.ts'))
  const start = (store: string, mode: 'whole' | 'stuck') =>
    new Program(process.execPath, [unpacker, store, mode], { cwd: store, env: {} })

  test('repeat the work of a killed process, and ignore its draft', async () => {
    await using store = await temporaryFolder()
    const killed = start(store.path, 'stuck')
    await killed.writes(/stuck/)
    await killed.kill()
    const [draft, ...others] = await readdir(store.path)
    expect(draft).toMatch(/^sha256-[0-9a-f]{64}\.\d+-0\.tmp$/)
    expect(others).toEqual([])
    await using secondProcess = start(store.path, 'whole')
    const [root] = await secondProcess.writes(/\S+\/root/)
    expect(await secondProcess.ended).toMatchObject({ exitCode: 0 })
    expect(await readdir(store.path)).toEqual([draft?.slice(0, 'sha256-'.length + 64)])
    expect(Object.keys(await readTree(root))).toHaveLength(211)
  })

  test('can unpack the same image concurrently, without removing the draft of another process', async () => {
    await using store = await temporaryFolder()
    await using processes = new AsyncDisposableStack()
    const stuckProcess = processes.use(start(store.path, 'stuck'))
    await stuckProcess.writes(/stuck/)
    const programs = [1, 2, 3].map(() => processes.use(start(store.path, 'whole')))
    const roots = await Promise.all(programs.map(async (program) => (await program.writes(/\S+\/root/))[0]))
    expect(new Set(roots).size).toBe(1)
    expect(Object.keys(await readTree(roots[0] ?? ''))).toHaveLength(211)
    const ends = await Promise.all(programs.map(({ ended }) => ended))
    expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
    const [, draft = '', ...others] = (await readdir(store.path)).toSorted((a, b) => a.length - b.length)
    expect(Object.keys(await readTree(join(store.path, draft, 'root')))).toHaveLength(210)
    expect(others).toEqual([])
  })
})

const opaqueMarker = file('d/.wh..wh..opq', '')
const aboveOpaque = { 'd/': '', 'd/e/': '', 'd/e/new': 'd/e/new', 'd/new': 'd/new', out: 'out' }
const belowOpaque = [file('d/old'), file('d/e/old'), file('out')]
const libraries = { 'usr/': '', 'usr/lib/': '', 'usr/lib/a': 'usr/lib/a', 'usr/lib/b': 'lib/b', lib: '-> usr/lib' }
const linkedTree = { 'd/': '', 'd/e': 'd/e', 'x/': '' }
const devices = (['character-device', 'block-device', 'fifo'] as const).map((type) => ({ name: type, type }))

test.each<[name: string, layers: RawEntry[][], tree: Record<string, string>]>([
  [
    'replaces and adds files',
    [
      [file('a', 'old'), file('b')],
      [file('a', 'new'), file('c/d')],
    ],
    { a: 'new', b: 'b', 'c/': '', 'c/d': 'c/d' },
  ],
  [
    'removes files and folders with whiteouts',
    [
      [file('a'), file('d/e/f'), file('d/g')],
      [file('.wh.a', ''), file('d/.wh.e', '')],
    ],
    { 'd/': '', 'd/g': 'd/g' },
  ],
  ['empties a folder before its entries', [belowOpaque, [opaqueMarker, file('d/new'), file('d/e/new')]], aboveOpaque],
  ['empties a folder after its entries', [belowOpaque, [file('d/new'), file('d/e/new'), opaqueMarker]], aboveOpaque],
  [
    'keeps files of the same layer despite a whiteout',
    [[file('d/old')], [folder('d'), file('d/new'), file('.wh.d', '')]],
    { 'd/': '', 'd/new': 'd/new' },
  ],
  [
    'ignores a whiteout in a folder that the same layer replaces by a file',
    [[file('d/a')], [file('d'), file('d/.wh.a', '')]],
    { d: 'd' },
  ],
  [
    'ignores whiteouts of missing files, and AUFS metadata',
    [[file('x/y/.wh.z', ''), file('.wh..wh.plnk', ''), file('a')]],
    { a: 'a' },
  ],
  ['replaces a file with a folder', [[file('x')], [folder('x'), file('x/y')]], { 'x/': '', 'x/y': 'x/y' }],
  ['replaces a folder with a file', [[file('x/y')], [file('x')]], { x: 'x' }],
  ['replaces a link to a folder with a folder', [[file('d/e'), symlink('x', 'd')], [folder('x')]], linkedTree],
  ['replaces a link with a file', [[file('d'), symlink('x', 'd')], [file('x')]], { d: 'd', x: 'x' }],
  ['removes a file that becomes a device', [[file('x')], [{ name: 'x', type: 'character-device' }]], {}],
  [
    'replaces one of two hard links',
    [[file('a', 'old'), hardLink('b', 'a')], [file('a', 'new')]],
    { a: 'new', b: 'old' },
  ],
  ['links a file to itself', [[file('a'), symlink('b', '.'), hardLink('b/a', 'a')]], { a: 'a', b: '-> .' }],
  [
    'writes through a link to a sibling of the parent folder',
    [[symlink('a/b/link', '../c'), file('a/b/link/new', 'new')]],
    { 'a/': '', 'a/b/': '', 'a/b/link': '-> ../c', 'a/c/': '', 'a/c/new': 'new' },
  ],
  [
    'writes through links of lower layers',
    [[file('usr/lib/a'), symlink('lib', 'usr/lib')], [file('lib/b')]],
    libraries,
  ],
  ['ignores devices and fifos', [[...devices, file('a')]], { a: 'a' }],
  ['creates absolute paths below the root', [[file('/etc/passwd')]], { 'etc/': '', 'etc/passwd': '/etc/passwd' }],
])('%s', async (_name, layers, tree) => {
  expect(await unpackLayers(...layers)).toEqual(tree)
})

test.each(['tar+gzip', 'tar+zstd', 'tar'] as const)('unpacks a layer of type %s', async (form) => {
  expect(await unpackLayers(layerOf(await tarOf([file('a')]), form))).toEqual({ a: 'a' })
})

test('keeps only the executable bit of file modes', async () => {
  const modes = { setuid: 0o4755, plain: 0o2666 }
  const files = Object.entries(modes).map(([name, mode]) => ({ ...file(name), mode }))
  const root = await (await storeImage([...files, { ...folder('sticky'), mode: 0o1777 }])).unpack()
  const unpackedModes = ['setuid', 'plain', 'sticky'].map(async (name) => (await stat(join(root, name))).mode & 0o7777)
  expect(await Promise.all(unpackedModes)).toEqual([0o755, 0o644, 0o755])
})

describe('an image', () => {
  test('is unpacked once, also for concurrent callers, and then found without a request', async () => {
    const { client, store, unpack } = await storeImage([file('a')], [file('b')])
    const roots = await Promise.all([unpack(), unpack(), unpack()])
    expect(new Set(roots).size).toBe(1)
    expect(await readTree(roots[0] ?? '')).toEqual({ a: 'a', b: 'b' })
    expect(await readdir(store)).toHaveLength(1)
    client.blobs.clear()
    expect(await unpack()).toBe(roots[0])
  })

  test('can be unpacked again after a failure', async () => {
    const { client, unpack } = await storeImage([file('a')])
    const blobs = new Map(client.blobs)
    client.blobs.clear()
    await expect(unpack()).rejects.toMatchObject({ problem: 'not_found' })
    for (const [key, bytes] of blobs) client.blobs.set(key, bytes)
    expect(await readTree(await unpack())).toEqual({ a: 'a' })
  })

  test('replaces an incomplete folder that remains after a power failure', async () => {
    const { image, store, unpack } = await storeImage([file('a')])
    const root = join(store, image.digest.replace(':', '-'), 'root')
    await mkdir(root, { recursive: true })
    await writeFile(join(root, 'a'), '')
    expect(await unpack()).toBe(root)
    expect(await readTree(root)).toEqual({ a: 'a' })
    expect(await readdir(store)).toHaveLength(1)
  })
})

describe('links', () => {
  test.each([
    ['an absolute path', symlink('a/b/link', '/etc/passwd'), '../../etc/passwd'],
    ['the root', symlink('a/b/link', '/'), '../..'],
    ['a path above the root', symlink('a/b/link', '../../../../../etc'), '../../etc'],
    ['a path that returns above the root', symlink('a/b/link', 'c/d/../../../../../x'), '../../x'],
    ['a sibling', symlink('a/b/link', './c'), 'c'],
    ['its folder', symlink('a/b/link', '.'), '.'],
  ])('to %s are rewritten to stay inside the root', async (_name, entry, text) => {
    expect(await unpackLayers([entry])).toMatchObject({ 'a/b/link': `-> ${text}` })
  })

  test('to the system root lead to the image root', async () => {
    await using outsideFolder = await temporaryFolder()
    const root = await (await storeImage([symlink('out', '/'), file(`out${outsideFolder.path}/evil`, 'evil')])).unpack()
    expect(await readFile(join(root, outsideFolder.path, 'evil'), 'utf8')).toBe('evil')
    await expect(stat(join(outsideFolder.path, 'evil'))).rejects.toThrow('ENOENT')
  })

  const twoSteps = [
    [symlink('one', 'two/..'), symlink('two', '..')],
    [symlink('up', '..'), file('one/up/evil')],
  ]
  test.each([
    ['in the same layer', [[symlink('up', '../../../..'), file('up/evil')]]],
    ['in an earlier layer', [[symlink('up', '../../../..')], [file('up/evil')]]],
    ['in two steps', twoSteps],
  ])('upwards %s are followed inside the root', async (_name, layers) => {
    const { folder, unpack } = await storeImage(...layers)
    await unpack()
    const paths = Object.keys(await readTree(folder)).filter((path) => path.endsWith('evil'))
    expect(paths).toEqual([expect.stringMatching(/^a\/store\/sha256-[0-9a-f]+\/root\//)])
  })
})

const layersOfSize = (size: string): RawEntry[][] => [[{ name: 'a', content: 'x', pax: { size } }]]
const sparseEntry = { name: 'GNUSparseFile.0/a', content: 'x', pax: { 'GNU.sparse.major': '1' } }

test.each<[name: string, layers: RawEntry[][], message: RegExp]>([
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
  ['a sparse file', [[sparseEntry]], /unsupported type/],
  ['a size that is not a number', layersOfSize('many'), /broken/],
  ['a negative size', layersOfSize('-1'), /broken/],
  ['a size beyond the layer', layersOfSize('9999999'), /broken/],
  ['a link with content', [[{ ...symlink('a', 'x'), pax: { size: '512' } }]], /content but is not a file/],
  ['a link to NUL', [[{ ...symlink('a', 'x'), pax: { linkpath: '\0' } }]], /broken/],
])('rejects a layer with %s without leftovers', async (_name, layers, message) => {
  const { folder, unpack } = await storeImage(...layers)
  const error = { name: 'RegistryError', problem: 'invalid', message: expect.stringMatching(message) }
  await expect(unpack()).rejects.toMatchObject(error)
  expect(await readdir(folder, { recursive: true })).toEqual(['a', 'a/store'])
})

const nondistributable = 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip'
type Layer = ReturnType<typeof layerOf>
const truncate = ({ descriptor, ...layer }: Layer, bytes: Buffer) => {
  const {
    descriptor: { digest, size },
  } = layerOf(bytes, 'tar')
  return { ...layer, descriptor: { ...descriptor, digest, size }, bytes }
}

test.each<[string, (layer: Layer, tar: Buffer) => Layer]>([
  ['with another digest than in the configuration', (layer) => ({ ...layer, diffId: `sha256:${'0'.repeat(64)}` })],
  [
    'of an unknown media type',
    (layer) => ({ ...layer, descriptor: { ...layer.descriptor, mediaType: nondistributable } }),
  ],
  ['that is truncated', (layer) => truncate(layer, layer.bytes.subarray(0, -20))],
  ['that is empty', (layer) => truncate(layer, Buffer.of())],
  ['that is text', (layer) => truncate(layer, Buffer.from('no archive'))],
  ['that ends within a file', (_layer, tar) => layerOf(tar.subarray(0, 5000))],
])('rejects a layer %s', async (_name, change) => {
  const tar = await tarOf([file('a', 'x'.repeat(100_000))])
  const { store, unpack } = await storeImage(change(layerOf(tar), tar))
  await expect(unpack()).rejects.toMatchObject({ problem: 'invalid' })
  expect(await readdir(store)).toEqual([])
})

const mebibyte = [file('a', '0'.repeat(2 ** 20))]
const entries = [file('a'), file('b'), file('c')]

test.each<[string, RawEntry[][], { bytes?: number; files?: number }, isAllowed: boolean]>([
  ['the unpacked size of all layers', [mebibyte, mebibyte], { bytes: 2.1 * 2 ** 20 }, true],
  ['the unpacked size of all layers', [mebibyte, mebibyte], { bytes: 1.9 * 2 ** 20 }, false],
  ['the files of all layers', [entries, entries], { files: 6 }, true],
  ['the files of all layers', [entries, entries], { files: 5 }, false],
  ['implicit folders', [[file('a/b/c/d')]], { files: 4 }, true],
  ['implicit folders', [[file('a/b/c/d')]], { files: 3 }, false],
])('limits %s (%#)', async (_name, layers, limits, isAllowed) => {
  const { store, unpack } = await storeImage(...layers)
  const outcome = await unpack(limits).then(
    () => 'unpacked',
    (error: { problem: string }) => error.problem,
  )
  expect(outcome).toBe(isAllowed ? 'unpacked' : 'too_large')
  expect(await readdir(store)).toHaveLength(isAllowed ? 1 : 0)
})

test('unpacks at most 2 GiB and 100,000 files by default', () => {
  expect(defaultUnpackLimits()).toEqual({ bytes: 2_147_483_648, files: 100_000 })
})
