import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { buildImage } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { readImage } from '@platform/oci/image'
import { exportLayout, saveLayout } from '@platform/oci/layout'
import { type FileToPack } from '@platform/oci/pack'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { importLayout } from '../support/import-layout.ts'
import { imageOfEntries } from '../support/image-layers.ts'
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

describe.skipIf(lacking !== '')(`images in a folder${lacking}`, () => {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  let client: RegistryClient

  beforeAll(async () => {
    registry = await startDockerRegistry()
    client = clientOf(registry.host).client
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())

  const address = (image: string) => `docker://${registry.host}/${image}`

  test('an image in a folder is one to skopeo and umoci, and comes back as it was', async () => {
    await using folder = await temporaryFolder()
    const layout = join(folder.path, 'layout')
    const built = await buildImage({ files })
    await exportLayout(built, layout, ['1', 'latest'])
    await exportLayout(await buildImage({ files: files.slice(1) }), layout, ['2'])
    expect((await outputOf('umoci', 'ls', '--layout', layout)).trim().split('\n').toSorted()).toEqual([
      '1',
      '2',
      'latest',
    ])
    await copy(`oci:${layout}:1`, address('team/by-skopeo:1'))
    expect((await client.resolve('team/by-skopeo', '1'))?.digest).toBe(built.digest)
    const sent = await importLayout(client, 'team/by-us', layout)
    expect(new Set(sent.map(({ tag }) => tag))).toEqual(new Set(['1', '2', 'latest']))
    expect((await client.manifest('team/by-us', 'latest'))?.bytes).toEqual(built.manifest)
    expect(await byUs(client, 'team/by-us', '2')).not.toHaveProperty('module.json')
  })

  test('a signed index is carried over in a folder: all platforms, and both kinds of signatures hold there', async () => {
    await using folder = await temporaryFolder()
    const digests = []
    for (const architecture of ['amd64', 'arm64']) {
      const built = await buildImage({
        files: [{ path: 'a', content: architecture }],
        platform: { os: 'linux', architecture },
      })
      const descriptor = await pushImage(client, 'team/signed', built, [])
      digests.push({ ...descriptor, platform: { os: 'linux', architecture } })
    }
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: digests }
    const top = await client.putManifest('team/signed', '1', Buffer.from(JSON.stringify(index)), mediaTypes.index)
    const [platformKey, indexKey] = [generateKeyPair(), generateKeyPair()]
    const [amd, arm] = digests as [(typeof digests)[0], (typeof digests)[0]]
    await signImage(client, 'team/signed', amd.digest, platformKey.privateKeyPem, { layout: 'tag' })
    await signImage(client, 'team/signed', top.digest, indexKey.privateKeyPem)
    await saveLayout(client, 'team/signed', '1', folder.path)

    await using other = await startDockerRegistry()
    const there = clientOf(other.host).client
    const images = await importLayout(there, 'far/away', folder.path)
    expect(images.find(({ tag }) => tag === '1')?.digest).toBe(top.digest)
    const verdicts = [
      await verifyImage(there, 'far/away', [amd.digest], [{ name: 'vendor', pem: platformKey.publicKeyPem }]),
      await verifyImage(there, 'far/away', [arm.digest, top.digest], [{ name: 'vendor', pem: indexKey.publicKeyPem }]),
      await verifyImage(there, 'far/away', [arm.digest], [{ name: 'vendor', pem: indexKey.publicKeyPem }]),
    ]
    expect(verdicts).toMatchObject([
      { isVerified: true, layout: 'tag' },
      { isVerified: true, layout: 'referrer', digest: top.digest },
      { isVerified: false, problem: 'unsigned' },
    ])
    expect(await readImage(there, 'far/away', '1', { os: 'linux', architecture: 'arm64' })).toMatchObject({
      digest: arm.digest,
    })
  })

  test('a folder that is not whole is refused', async () => {
    await using folder = await temporaryFolder()
    await expect(importLayout(client, 'team/broken', folder.path)).rejects.toMatchObject({ problem: 'invalid' })
    await exportLayout(await buildImage({ files }), folder.path, ['1'])
    const blobs = join(folder.path, 'blobs/sha256')
    for (const name of await readdir(blobs)) {
      await using part = await temporaryFolder()
      await outputOf('cp', '-r', folder.path, `${part.path}/layout`)
      await rm(join(part.path, 'layout/blobs/sha256', name))
      const refusal = importLayout(client, 'team/broken', `${part.path}/layout`)
      await expect(refusal).rejects.toMatchObject({ problem: 'invalid' })
      await outputOf('sh', '-c', `echo other > '${part.path}/layout/blobs/sha256/${name}'`)
      const second = importLayout(client, 'team/broken', `${part.path}/layout`)
      await expect(second).rejects.toMatchObject({ problem: 'invalid' })
    }
    expect(await client.resolve('team/broken', '1')).toBeUndefined()
  })

  test('an image whose base is in a registry is saved from there, not exported', async () => {
    await using folder = await temporaryFolder()
    const base = await imageOfEntries(client, [{ name: 'base', content: 'base' }])
    const built = await buildImage({ files, base })
    await expect(exportLayout(built, folder.path)).rejects.toThrow(/save it/)
    await pushImage(client, 'team/saved', built, ['1'])
    await saveLayout(client, 'team/saved', '1', folder.path)
    expect((await importLayout(client, 'team/again', folder.path)).map(({ digest }) => digest)).toEqual([built.digest])
    expect(await byUmoci(address('team/again:1'))).toMatchObject({ base: 'base' })
    await expect(saveLayout(client, 'team/saved', '2', folder.path)).rejects.toMatchObject({ problem: 'not_found' })
  })
})
