import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildImage } from '@platform/oci/build'
import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { readImage } from '@platform/oci/image'
import { exportLayout, saveLayout } from '@platform/oci/layout'
import { readBlob, readIndex, readManifest, writeBlob } from '@platform/oci/layout-folder'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { type Index, mediaTypes } from '@platform/oci/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { importLayout } from '../support/import-layout.ts'
import { imageOfEntries } from '../support/image-layers.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { clientOf, copy, files, unpackByUmoci, unpackTag, useRegistry } from './support.ts'

const imageOf = (content: string) => buildImage({ files: [{ path: 'a', content }] })

const indexOf = async (folder: string): Promise<Index> =>
  JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')) as Index

const refName = 'org.opencontainers.image.ref.name'

test('moves a tag to the image that is exported last', async () => {
  await using folder = await temporaryFolder()
  const [image, otherImage] = [await imageOf('1'), await imageOf('2')]
  await exportLayout(image, folder.path, ['1', 'latest'])
  await exportLayout(otherImage, folder.path, ['2', 'latest'])
  await exportLayout(otherImage, folder.path)
  await exportLayout(otherImage, folder.path)
  const entries = (await indexOf(folder.path)).manifests.map((entry) => [entry.annotations?.[refName], entry.digest])
  expect(entries).toEqual([
    ['1', image.digest],
    ['latest', otherImage.digest],
    ['2', otherImage.digest],
    [undefined, otherImage.digest],
  ])
})

test('imports an image without a tag by its digest', async () => {
  await using folder = await temporaryFolder()
  const image = await imageOf('1')
  await exportLayout(image, folder.path)
  const client = memoryRegistry()
  expect(await importLayout(client, 'team/hello', folder.path)).toEqual([
    { mediaType: mediaTypes.manifest, digest: image.digest, size: image.manifest.length },
  ])
  expect(client.digestByTag.size).toBe(0)
})

async function pushIndex(client: RegistryClient) {
  const manifests = []
  for (const architecture of ['amd64', 'arm64']) {
    const platform = { os: 'linux', architecture }
    const image = await buildImage({ files: [{ path: 'a', content: architecture }], platform })
    manifests.push({ ...(await pushImage(client, 'team/signed', image, [])), platform })
  }
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }))
  const indexDescriptor = await client.putManifest('team/signed', '1', bytes, mediaTypes.index)
  const [amd = '', arm = ''] = manifests.map(({ digest }) => digest)
  return { top: indexDescriptor, amd, arm }
}

test('lists an index and its signatures in a folder, but not the images of the index', async () => {
  await using folder = await temporaryFolder()
  const client = memoryRegistry()
  const { top, arm } = await pushIndex(client)
  const { privateKeyPem } = generateKeyPair()
  const tagged = await signImage(client, 'team/signed', arm, privateKeyPem, { layout: 'tag' })
  const referrer = await signImage(client, 'team/signed', top.digest, privateKeyPem)
  await saveLayout(client, 'team/signed', '1', folder.path)
  const digests = (await indexOf(folder.path)).manifests.map(({ digest }) => digest)
  expect(digests).toEqual([top.digest, tagged.digest, referrer.digest])
  expect(await importLayout(memoryRegistry(), 'far/away', folder.path)).toEqual([{ ...top, tag: '1' }])
})

test('rejects a missing, changed or large blob', async () => {
  await using folder = await temporaryFolder()
  const image = await imageOf('1')
  await exportLayout(image, folder.path)
  const path = join(folder.path, 'blobs', ...image.digest.split(':'))
  const { length } = image.manifest
  expect(await readBlob(folder.path, image.digest, length)).toEqual(image.manifest)
  await expect(readBlob(folder.path, image.digest, length - 1)).rejects.toMatchObject({ problem: 'too_large' })
  await writeFile(path, 'other')
  await expect(readBlob(folder.path, image.digest, length)).rejects.toMatchObject({ problem: 'invalid' })
  await rm(path)
  await expect(readBlob(folder.path, image.digest, length)).rejects.toMatchObject({ problem: 'invalid' })
})

test('rejects a broken index instead of replacing it', async () => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'index.json'), '{"manifests":')
  const brokenIndex = { problem: 'invalid', message: `index.json in ${folder.path} is missing or broken.` }
  await expect(exportLayout(await imageOf('1'), folder.path)).rejects.toMatchObject(brokenIndex)
  await expect(readIndex(folder.path)).rejects.toMatchObject(brokenIndex)
})

test.each([
  ['is not JSON', 'no JSON'],
  ['is neither a manifest nor an index', '{"schemaVersion":2}'],
  ['is a manifest and an index', '{"schemaVersion":2,"manifests":[],"layers":[]}'],
])('rejects a manifest that %s', async (_name, text) => {
  await using folder = await temporaryFolder()
  await writeBlob(folder.path, Buffer.from(text))
  await expect(readManifest(folder.path, digestOf(text))).rejects.toMatchObject({ problem: 'invalid' })
})

const noPeersReason = missingPrograms('docker-registry', 'skopeo', 'umoci')

describe.skipIf(noPeersReason !== '')(`layouts and other tools${noPeersReason}`, () => {
  const registry = useRegistry()
  let client: RegistryClient
  beforeAll(() => {
    client = clientOf(registry.host).client
  })
  const address = (image: string) => `docker://${registry.host}/${image}`

  test('exports an image that skopeo and umoci can read', async () => {
    await using folder = await temporaryFolder()
    const layout = join(folder.path, 'layout')
    const image = await buildImage({ files })
    await exportLayout(image, layout, ['1', 'latest'])
    await exportLayout(await buildImage({ files: files.slice(1) }), layout, ['2'])
    const tags = (await outputOf('umoci', 'ls', '--layout', layout)).trim().split('\n')
    expect(tags.toSorted()).toEqual(['1', '2', 'latest'])
    await copy(`oci:${layout}:1`, address('team/by-skopeo:1'))
    expect((await client.resolve('team/by-skopeo', '1'))?.digest).toBe(image.digest)
    const importedImages = await importLayout(client, 'team/by-platform', layout)
    expect(new Set(importedImages.map(({ tag }) => tag))).toEqual(new Set(['1', '2', 'latest']))
    expect((await client.manifest('team/by-platform', 'latest'))?.bytes).toEqual(image.manifest)
    expect(await unpackTag(client, 'team/by-platform', '2')).not.toHaveProperty('module.json')
  })

  test('transfers an index with all platforms and both kinds of signatures', async () => {
    await using folder = await temporaryFolder()
    const { top, amd, arm } = await pushIndex(client)
    const [platformKey, indexKey] = [generateKeyPair(), generateKeyPair()]
    await signImage(client, 'team/signed', amd, platformKey.privateKeyPem, { layout: 'tag' })
    await signImage(client, 'team/signed', top.digest, indexKey.privateKeyPem)
    await saveLayout(client, 'team/signed', '1', folder.path)

    await using otherRegistry = await startDockerRegistry()
    const target = clientOf(otherRegistry.host).client
    const images = await importLayout(target, 'far/away', folder.path)
    expect(images.find(({ tag }) => tag === '1')?.digest).toBe(top.digest)
    const verify = (digests: string[], { publicKeyPem }: { publicKeyPem: string }) =>
      verifyImage(target, 'far/away', digests, [{ name: 'vendor', pem: publicKeyPem }])
    expect(await verify([amd], platformKey)).toMatchObject({ isVerified: true, layout: 'tag' })
    const indexSignature = { isVerified: true, layout: 'referrer', digest: top.digest }
    expect(await verify([arm, top.digest], indexKey)).toMatchObject(indexSignature)
    expect(await verify([arm], indexKey)).toMatchObject({ isVerified: false, problem: 'unsigned' })
    const image = await readImage(target, 'far/away', '1', { os: 'linux', architecture: 'arm64' })
    expect(image).toMatchObject({ digest: arm })
  })

  test('saves an image with a base only from its registry and rejects a direct export', async () => {
    await using folder = await temporaryFolder()
    const base = await imageOfEntries(client, [{ name: 'base', content: 'base' }])
    const image = await buildImage({ files, base })
    await expect(exportLayout(image, folder.path)).rejects.toThrow(/save it/)
    await pushImage(client, 'team/saved', image, ['1'])
    await saveLayout(client, 'team/saved', '1', folder.path)
    expect((await importLayout(client, 'team/again', folder.path)).map(({ digest }) => digest)).toEqual([image.digest])
    expect(await unpackByUmoci(address('team/again:1'))).toMatchObject({ base: 'base' })
    await expect(saveLayout(client, 'team/saved', '2', folder.path)).rejects.toMatchObject({ problem: 'not_found' })
  })
})
