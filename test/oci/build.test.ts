import { chmod, mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildImage, buildNodeLayer } from '@platform/oci/build'
import { digestOf } from '@platform/oci/digest'
import { currentPlatform, readFile, readImage } from '@platform/oci/image'
import { type FileToPack, packLayer } from '@platform/oci/pack'
import { pushImage, replicateImage } from '@platform/oci/push'
import { type ImageConfig, type Manifest, mediaTypes } from '@platform/oci/types'
import { unpackImage } from '@platform/oci/unpack'
import { describe, expect, test } from 'vitest'
import { isLong } from '../support/long.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'

const hello: FileToPack[] = [
  { path: '/module.json', content: '{"id":"hello"}' },
  { path: 'app/main.js', content: 'console.log(1)', mode: 0o755 },
  { path: 'app/lib/ä.js', content: 'x' },
]

describe('the same input gives the same image', () => {
  test('in any order of files and labels', async () => {
    const image = await buildImage({ files: hello, labels: { a: '1', b: '2' } })
    const otherImage = await buildImage({ files: hello.toReversed(), labels: { b: '2', a: '1' } })
    expect(otherImage).toEqual(image)
  })

  test('from files or content, regardless of times and of write permission', async () => {
    await using folder = await temporaryFolder()
    await mkdir(join(folder.path, 'lib'))
    await writeFile(join(folder.path, 'main.js'), 'console.log(1)')
    await writeFile(join(folder.path, 'lib', 'ä.js'), 'x', { mode: 0o600 })
    await utimes(join(folder.path, 'main.js'), 1, 1)
    await chmod(join(folder.path, 'main.js'), 0o777)
    const sources = await packLayer([{ path: 'app', source: folder.path }])
    const contents = await packLayer([{ path: 'app/main.js', content: 'console.log(1)' }, hello[2]!])
    expect(sources).toEqual(contents)
  })

  test('on any machine, without time, name or system', async () => {
    const layer = await packLayer(hello)
    expect(layer.diffId).toBe('sha256:84b4d26fb09d24a671a52cef121cb18e7022e9d64177c4d94457e14afaa78281')
    expect(layer.bytes.subarray(0, 10)).toEqual(Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]))
  })

  test('without special mode bits', async () => {
    const [plain, special] = [0o755, 0o7755].map((mode) => packLayer([{ path: 'a', content: '', mode }]))
    expect(await special).toEqual(await plain)
  })

  test.each<[string, Partial<Parameters<typeof buildImage>[0]>]>([
    ['content', { files: [{ path: 'a', content: '2' }] }],
    ['name', { files: [{ path: 'b', content: '1' }] }],
    ['mode', { files: [{ path: 'a', content: '1', mode: 0o755 }] }],
    ['label', { labels: { a: '1' } }],
    ['command', { config: { Cmd: ['a'] } }],
    ['platform', { platform: { os: 'linux', architecture: 'riscv64' } }],
    ['time', { created: '2025-01-01T00:00:00Z' }],
  ])('but not for another %s', async (_name, change) => {
    const input = { files: [{ path: 'a', content: '1' }] }
    const [original, changedImage] = [await buildImage(input), await buildImage({ ...input, ...change })]
    expect(changedImage.digest).not.toBe(original.digest)
  })
})

test('builds a manifest and a configuration', async () => {
  const image = await buildImage({
    files: hello,
    config: { Cmd: ['node', '/app/main.js'], WorkingDir: '/app' },
    labels: { color: 'blue' },
  })
  const manifest = JSON.parse(image.manifest.toString()) as Manifest
  const config = JSON.parse(image.config.toString()) as ImageConfig
  expect(image.digest).toBe(digestOf(image.manifest))
  expect(manifest).toEqual({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: { mediaType: mediaTypes.config, digest: digestOf(image.config), size: image.config.length },
    layers: image.layers.map(({ descriptor }) => descriptor),
  })
  expect(config).toMatchObject({
    ...currentPlatform(),
    created: '1970-01-01T00:00:00Z',
    config: { Cmd: ['node', '/app/main.js'], WorkingDir: '/app', Labels: { color: 'blue' } },
    rootfs: { type: 'layers', diff_ids: image.layers.map(({ diffId }) => diffId) },
  })
})

const emptyFile = (path: string): FileToPack => ({ path, content: '' })

describe('rejects', () => {
  test.each<[string, FileToPack[], RegExp]>([
    ['a path upwards', [emptyFile('../a')], /is invalid in an image/],
    ['a file as the root', [emptyFile('/')], /two files for \/,/],
    ['a file twice', [emptyFile('a'), emptyFile('/a')], /two files for \/a/],
    ['a file that is a folder too', [emptyFile('a'), emptyFile('a/b')], /is a file and a folder/],
    ['a whiteout', [emptyFile('a/.wh.b/c')], /would hide files/],
    ['a missing source', [{ path: 'a', source: '/nowhere/at/all' }], /ENOENT/],
    ['a device as a source', [{ path: 'a', source: '/dev/null' }], /neither a file nor a folder/],
  ])('%s', async (_name, files, message) => {
    await expect(packLayer(files)).rejects.toThrow(message)
  })

  test('a link in a source folder', async () => {
    await using folder = await temporaryFolder()
    await symlink('/etc/passwd', join(folder.path, 'link'))
    await expect(packLayer([{ path: 'a', source: folder.path }])).rejects.toThrow(/neither a file nor a folder/)
  })
})

async function pushBase() {
  const client = memoryRegistry()
  const image = await buildImage({
    files: [{ path: 'usr/bin/node', content: 'node' }],
    config: { Env: ['PATH=/usr/bin'], Entrypoint: ['node'], User: '1' },
    labels: { base: 'yes', color: 'blue' },
    platform: { os: 'linux', architecture: 'riscv64' },
  })
  await pushImage(client, 'team/base', image, ['1'])
  return { client, base: (await readImage(client, 'team/base', '1'))! }
}

describe('an image with a base', () => {
  test('inherits its layers, platform, labels and configuration', async () => {
    const { client, base } = await pushBase()
    const input = { files: hello, base, config: { User: '2' }, labels: { color: 'red' } }
    await pushImage(client, 'team/hello', await buildImage(input), ['1'])
    const image = await readImage(client, 'team/hello', '1')
    expect(image?.manifest.layers.slice(0, 1)).toEqual(base.manifest.layers)
    expect(image).toMatchObject({
      labels: { base: 'yes', color: 'red' },
      config: { architecture: 'riscv64', config: { Env: ['PATH=/usr/bin'], Entrypoint: ['node'], User: '2' } },
    })
    expect((await readFile(client, image!, ['usr/bin/node'], 10))?.toString()).toBe('node')
  })

  test('converts the media types of Docker layers', async () => {
    const { base } = await pushBase()
    const mediaType = 'application/vnd.docker.image.rootfs.diff.tar.gzip'
    const dockerManifest = { ...base.manifest, layers: [{ ...base.manifest.layers[0]!, mediaType }] }
    const { manifest } = await buildImage({ files: hello, base: { ...base, manifest: dockerManifest } })
    const types = (JSON.parse(manifest.toString()) as Manifest).layers.map((layer) => layer.mediaType)
    expect(types).toEqual([mediaTypes.layer, mediaTypes.layer])
  })

  test('orders the layers of the base, additional layers and files', async () => {
    const { base } = await pushBase()
    const middle = [await packLayer([{ path: 'm', content: '1' }]), await packLayer([{ path: 'm', content: '2' }])]
    const { layers } = await buildImage({ files: [{ path: 'm', content: '3' }], base, layers: middle })
    expect(layers).toHaveLength(4)
    expect(layers.slice(1, 3)).toEqual(middle)
    expect(layers[0]).toMatchObject({ repository: 'team/base', diffId: base.config.rootfs.diff_ids[0] })
  })
})

test('pushes an image without a tag', async () => {
  const client = memoryRegistry()
  const image = await buildImage({ files: hello })
  expect(await pushImage(client, 'team/hello', image, [])).toMatchObject({ digest: image.digest })
  expect(await readImage(client, 'team/hello', image.digest)).toMatchObject({ digest: image.digest })
  expect(client.digestByTag.size).toBe(0)
})

test('copies an image byte for byte, without blobs that the target has', async () => {
  const [from, to] = [memoryRegistry('from.test'), memoryRegistry('to.test')]
  const builtImage = await buildImage({ files: hello })
  await pushImage(from, 'team/hello', builtImage, ['1', 'latest'])
  expect([...from.digestByTag.keys()]).toEqual(['team/hello latest', 'team/hello 1'])
  const image = (await readImage(from, 'team/hello', '1'))!
  await to.putBlob('modules/hello', builtImage.config)
  from.blobs.delete(`team/hello ${digestOf(builtImage.config)}`)
  const copy = await replicateImage(from, image, to, 'modules/hello', 'v1')
  expect(copy.digest).toBe(builtImage.digest)
  expect((await to.manifest('modules/hello', 'v1'))?.bytes).toEqual(builtImage.manifest)
  expect(await readImage(to, 'modules/hello', builtImage.digest)).toMatchObject({ digest: builtImage.digest })
  await from.remove('team/hello', builtImage.digest)
  await expect(replicateImage(from, image, to, 'modules/hello', 'v2')).rejects.toMatchObject({ problem: 'not_found' })
})

test('fails if the target registry stores a copy under another digest', async () => {
  const [from, to] = [memoryRegistry('from.test'), memoryRegistry('to.test')]
  await pushImage(from, 'team/hello', await buildImage({ files: hello }), ['1'])
  const image = (await readImage(from, 'team/hello', '1'))!
  const changedRegistry = { ...to, putManifest: async () => ({ mediaType: 'x', digest: digestOf('x'), size: 1 }) }
  await expect(replicateImage(from, image, changedRegistry, 'modules/hello', '1')).rejects.toMatchObject({
    problem: 'invalid',
  })
})

const cannotChangeRoot = process.platform !== 'linux' || process.getuid?.() !== 0

// Short runs skip this test, because it packs all of Node.js.
test.skipIf(cannotChangeRoot || !isLong)('the Node.js layer contains exactly the libraries of Node.js', async () => {
  await using store = await temporaryFolder()
  const client = memoryRegistry()
  const files = [{ path: 'main.js', content: 'console.log(process.version)' }]
  await pushImage(client, 'team/node', await buildImage({ files, layers: [await buildNodeLayer()] }), ['1'])
  const root = await unpackImage(client, (await readImage(client, 'team/node', '1'))!, store.path)
  const command = ['--unset=NODE_COMPILE_CACHE', 'chroot', root, '/usr/local/bin/node', '/main.js']
  expect(await outputOf('env', ...command)).toBe(`${process.version}\n`)
  const names = Object.keys(await readTree(root)).filter((name) => !name.endsWith('/'))
  const expected = /^(usr\/local\/bin\/node|main\.js|(usr\/)?lib(64)?\/.*\.so[.\d]*)$/
  expect(names.filter((name) => !expected.test(name))).toEqual([])
})
