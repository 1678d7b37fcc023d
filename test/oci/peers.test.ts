import { rm } from 'node:fs/promises'
import { buildImage } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { readFile, readImage } from '@platform/oci/image'
import { pushImage, replicateImage } from '@platform/oci/push'
import { mediaTypes } from '@platform/oci/types'
import { array, constantFrom, oneof, record, sample, tuple } from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { layerOf, type RawEntry, tarOf } from '../support/image-layers.ts'
import { isLong } from '../support/long.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { clientOf, copy, files, unpackByUmoci, unpackTag, useRegistry } from './support.ts'

const noPeersReason = missingPrograms('docker-registry', 'skopeo', 'umoci')

describe.skipIf(noPeersReason !== '')(`images and other tools${noPeersReason}`, () => {
  const registry = useRegistry()
  let client: RegistryClient
  beforeAll(() => {
    client = clientOf(registry.host).client
  })
  const address = (image: string) => `docker://${registry.host}/${image}`

  const inspect = async (image: string): Promise<unknown> =>
    JSON.parse(await outputOf('skopeo', 'inspect', '--tls-verify=false', address(image)))

  test('builds images that skopeo and umoci can read', async () => {
    const labels = { 'org.platform.module.id': 'hello' }
    const image = await buildImage({ files, labels, config: { Cmd: ['node', '/app/main.js'] } })
    const { digest } = await pushImage(client, 'team/built', image, ['1', 'latest'])
    expect(await inspect('team/built:1')).toMatchObject({
      Digest: digest,
      RepoTags: expect.arrayContaining(['1', 'latest']),
      Labels: labels,
      Os: 'linux',
      Layers: image.layers.map((layer) => layer.descriptor.digest),
    })
    expect(await unpackByUmoci(address('team/built:1'))).toEqual(await unpackTag(client, 'team/built', '1'))
    expect(await unpackTag(client, 'team/built', '1')).toMatchObject({ 'app/main.js': 'console.log(1)' })
  })

  test('reads, unpacks and copies a Docker image of skopeo', async () => {
    await pushImage(client, 'team/docker', await buildImage({ files, labels: { color: 'blue' } }), ['1'])
    await copy(address('team/docker:1'), address('team/docker:2'), '--format', 'v2s2')
    const image = (await readImage(client, 'team/docker', '2'))!
    expect(image).toMatchObject({ labels: { color: 'blue' }, manifest: { mediaType: mediaTypes.dockerManifest } })
    expect((await readFile(client, image, ['module.json'], 100))?.toString()).toBe('{"id":"hello"}')
    expect(await unpackTag(client, 'team/docker', '2')).toEqual(await unpackTag(client, 'team/docker', '1'))
    await using otherRegistry = await startDockerRegistry()
    const replicated = await replicateImage(client, image, clientOf(otherRegistry.host).client, 'modules/docker', '2')
    expect(replicated.digest).toBe(image.digest)
    const target = `docker://${otherRegistry.host}/modules/docker:2`
    expect(digestOf(await outputOf('skopeo', 'inspect', '--raw', '--tls-verify=false', target))).toBe(image.digest)
  })

  test('mounts the layers of a base image from another repository', async () => {
    const { client, sent } = clientOf(registry.host)
    await pushImage(client, 'team/base', await buildImage({ files: [{ path: 'base', content: 'base' }] }), ['1'])
    const base = (await readImage(client, 'team/base', '1'))!
    sent.length = 0
    await pushImage(client, 'team/based', await buildImage({ files, base }), ['1'])
    const tree = { base: 'base', 'module.json': '{"id":"hello"}' }
    expect(await unpackByUmoci(address('team/based:1'))).toMatchObject(tree)
    // The base's layer is mounted; the layer on it and the configuration are uploaded.
    expect(sent.filter((line) => /^PUT .*\/uploads\//.test(line))).toHaveLength(2)
    sent.length = 0
    await pushImage(client, 'team/based', await buildImage({ files, base }), ['2'])
    expect(sent.filter((line) => /^(POST|PUT) |^GET .*blobs/.test(line))).toEqual(['PUT /v2/team/based/manifests/2'])
    sent.length = 0
    const image = (await readImage(client, 'team/based', '2'))!
    await replicateImage(client, image, client, 'team/replicated', '2')
    expect(sent.filter((line) => line.startsWith('PUT '))).toEqual(['PUT /v2/team/replicated/manifests/2'])
  })

  test('unpacks layers of umoci with whiteouts and links like umoci', async () => {
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
    const tree = await unpackTag(client, 'team/umoci', '1')
    expect(tree).toMatchObject({ usr: '3\n', 'd/e/new': '2\n', abs: '-> etc' })
    expect(tree).toEqual({ ...(await unpackByUmoci(address('team/umoci:1'))), abs: '-> etc' })
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
  // Whiteouts come first, because tools differ in how whiteouts affect other entries of the same layer.
  const layer = tuple(array(whiteout, { maxLength: 2 }), array<RawEntry>(entry, { maxLength: 5 })).map((lists) =>
    lists.flat(),
  )

  test('unpacks random layers like umoci, or rejects them', async () => {
    let comparedCount = 0
    const numRuns = isLong ? 24 : 8
    for (const layers of sample(array(layer, { minLength: 2, maxLength: 3 }), { seed: 7, numRuns })) {
      const archives = await Promise.all(layers.map(async (entries) => layerOf(await tarOf(entries))))
      await pushImage(client, 'team/chance', await buildImage({ files: [], layers: archives }), ['1'])
      const [ourResult, theirResult] = await Promise.allSettled([
        unpackTag(client, 'team/chance', '1'),
        unpackByUmoci(address('team/chance:1')),
      ])
      if (ourResult.status === 'rejected') expect(ourResult.reason).toMatchObject({ problem: 'invalid' })
      else {
        expect({ layers, tree: theirResult }).toEqual({ layers, tree: { status: 'fulfilled', value: ourResult.value } })
        comparedCount += 1
      }
    }
    expect(comparedCount).toBeGreaterThan(numRuns / 3)
  })
})
