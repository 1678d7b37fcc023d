import { rm } from 'node:fs/promises'
import { buildImage } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { readFile, readImage } from '@platform/oci/image'
import { type FileToPack, packLayer } from '@platform/oci/pack'
import { pushImage } from '@platform/oci/push'
import { replicateImage } from '@platform/oci/replicate'
import { mediaTypes } from '@platform/oci/types'
import { array, constantFrom, oneof, record, sample, tuple } from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { isLong } from '../support/long.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { clientOf } from './support.ts'
import { byUmoci, byUs, copy } from './unpackers.ts'

const lacking = missingPrograms('docker-registry', 'skopeo', 'umoci')

const files: FileToPack[] = [
  { path: '/module.json', content: '{"id":"hello"}' },
  { path: 'app/main.js', content: 'console.log(1)', mode: 0o755 },
  { path: `app/${'long/'.repeat(50)}ä.js`, content: 'deep' },
]

describe.skipIf(lacking !== '')(`images as others see them${lacking}`, () => {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  let client: RegistryClient

  beforeAll(async () => {
    registry = await startDockerRegistry()
    client = clientOf(registry.host).client
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())

  const address = (image: string) => `docker://${registry.host}/${image}`

  const inspect = async (image: string): Promise<unknown> =>
    JSON.parse(await outputOf('skopeo', 'inspect', '--tls-verify=false', address(image)))

  test('an image that we build and push is one to skopeo and umoci', async () => {
    const labels = { 'org.platform.module.id': 'hello' }
    const built = await buildImage({ files, labels, config: { Cmd: ['node', '/app/main.js'] } })
    const { digest } = await pushImage(client, 'team/built', built, ['1', 'latest'])
    expect(await inspect('team/built:1')).toMatchObject({
      Digest: digest,
      RepoTags: expect.arrayContaining(['1', 'latest']),
      Labels: labels,
      Os: 'linux',
      Layers: built.layers.map((layer) => layer.descriptor.digest),
    })
    expect(await byUmoci(address('team/built:1'))).toEqual(await byUs(client, 'team/built', '1'))
    expect(await byUs(client, 'team/built', '1')).toMatchObject({ 'app/main.js': 'console.log(1)' })
  })

  test('an image that skopeo turns into one of Docker is read, unpacked and copied by its digest', async () => {
    await pushImage(client, 'team/docker', await buildImage({ files, labels: { color: 'blue' } }), ['1'])
    await copy(address('team/docker:1'), address('team/docker:2'), '--format', 'v2s2')
    const image = (await readImage(client, 'team/docker', '2'))!
    expect(image).toMatchObject({ labels: { color: 'blue' }, manifest: { mediaType: mediaTypes.dockerManifest } })
    expect((await readFile(client, image, ['module.json'], 100))?.toString()).toBe('{"id":"hello"}')
    expect(await byUs(client, 'team/docker', '2')).toEqual(await byUs(client, 'team/docker', '1'))
    await using other = await startDockerRegistry()
    const sent = await replicateImage(client, image, clientOf(other.host).client, 'modules/docker', '2')
    expect(sent.digest).toBe(image.digest)
    const raw = await outputOf(
      'skopeo',
      'inspect',
      '--raw',
      '--tls-verify=false',
      `docker://${other.host}/modules/docker:2`,
    )
    expect(digestOf(raw)).toBe(image.digest)
  })

  test('an image on a base of another repository is whole, and the base was not sent again', async () => {
    const { client, sent } = clientOf(registry.host)
    await pushImage(client, 'team/base', await buildImage({ files: [{ path: 'base', content: 'base' }] }), ['1'])
    const base = (await readImage(client, 'team/base', '1'))!
    sent.length = 0
    await pushImage(client, 'team/based', await buildImage({ files, base }), ['1'])
    expect(await byUmoci(address('team/based:1'))).toMatchObject({ base: 'base', 'module.json': '{"id":"hello"}' })
    // The base's layer is mounted; the layer on it and the configuration are uploaded.
    expect(sent.filter((line) => /^PUT .*\/uploads\//.test(line))).toHaveLength(2)
    sent.length = 0
    await pushImage(client, 'team/based', await buildImage({ files, base }), ['2'])
    expect(sent.filter((line) => /^(POST|PUT) |^GET .*blobs/.test(line))).toEqual(['PUT /v2/team/based/manifests/2'])
    sent.length = 0
    const image = (await readImage(client, 'team/based', '2'))!
    await replicateImage(client, image, client, 'team/replicated', '2')
    // All is mounted.
    expect(sent.filter((line) => line.startsWith('PUT '))).toEqual(['PUT /v2/team/replicated/manifests/2'])
  })

  test('layers that umoci makes, with all that they take away, come to the same', async () => {
    await using folder = await temporaryFolder()
    const layout = `${folder.path}/layout`
    await outputOf('umoci', 'init', '--layout', layout)
    await outputOf('umoci', 'new', '--image', `${layout}:it`)
    for (const change of [
      'mkdir -p usr/lib d/e && echo 1 > usr/lib/a && ln -s usr/lib lib && echo 1 > d/e/f && ln d/e/f d/g && ln -s /etc abs',
      'rm -r d/e && mkdir d/e && echo 2 > d/e/new && echo 2 > usr/lib/b && rm lib && ln -s usr lib',
      'rm d/g && rm -r usr && echo 3 > usr && chmod 755 usr && mkdir -p x/y/z',
    ]) {
      const bundle = `${folder.path}/bundle`
      await outputOf('umoci', 'unpack', '--rootless', '--image', `${layout}:it`, bundle)
      await outputOf('sh', '-c', `cd '${bundle}/rootfs' && ${change}`)
      await outputOf('umoci', 'repack', '--image', `${layout}:it`, bundle)
      await rm(bundle, { recursive: true })
    }
    await copy(`oci:${layout}:it`, address('team/umoci:1'))
    const tree = await byUs(client, 'team/umoci', '1')
    expect(tree).toMatchObject({ usr: '3\n', 'd/e/new': '2\n', abs: '-> etc' })
    expect(tree).toEqual({ ...(await byUmoci(address('team/umoci:1'))), abs: '-> etc' })
  })

  const names = constantFrom('a', 'b', 'c')
  const path = array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
  const entry = oneof(
    record({ name: path, content: constantFrom('1', '2', '3') }),
    record({ name: path, type: constantFrom('directory' as const) }),
    record({ name: path, type: constantFrom('symlink' as const), linkname: names }),
  )
  const whiteout = tuple(array(names, { maxLength: 2 }), oneof(names, constantFrom('.wh..opq'))).map(
    ([folders, name]) => ({ name: [...folders, `.wh.${name}`].join('/') }),
  )
  // Whiteouts first: for what else their own layer has, tools differ.
  const layer = tuple(array(whiteout, { maxLength: 2 }), array<RawEntry>(entry, { maxLength: 5 })).map((lists) =>
    lists.flat(),
  )

  test('layers of chance come to the same as with umoci, where they are no error', async () => {
    let compared = 0
    const numRuns = isLong ? 24 : 8
    for (const layers of sample(array(layer, { minLength: 2, maxLength: 3 }), { seed: 7, numRuns })) {
      const archives = await Promise.all(layers.map(async (entries) => layerOf(await tarOf(entries))))
      await pushImage(client, 'team/chance', await buildImage({ files: [], layers: archives }), ['1'])
      const [ours, theirs] = await Promise.allSettled([
        byUs(client, 'team/chance', '1'),
        byUmoci(address('team/chance:1')),
      ])
      if (ours.status === 'rejected') expect(ours.reason).toMatchObject({ problem: 'invalid' })
      else {
        expect({ layers, tree: theirs }).toEqual({ layers, tree: { status: 'fulfilled', value: ours.value } })
        compared += 1
      }
    }
    expect(compared).toBeGreaterThan(numRuns / 3)
  })

  test('a layer of more than a chunk of the network comes and goes whole', async () => {
    const content = Buffer.alloc(3 * 2 ** 20, 'content of some length ')
    const layer = await packLayer([{ path: 'large', content }])
    await pushImage(client, 'team/large', await buildImage({ files: [], layers: [layer] }), ['1'])
    expect((await byUs(client, 'team/large', '1'))['large']).toBe(content.toString())
  })
})
