import { readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildImage } from '@platform/oci/build'
import { digestOf } from '@platform/oci/digest'
import { exportLayout, saveLayout } from '@platform/oci/layout'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { type Index, mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { importLayout } from '../support/import-layout.ts'
import { memoryRegistry } from '../support/memory-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const imageOf = (content: string) => buildImage({ files: [{ path: 'a', content }] })

const indexOf = async (folder: string): Promise<Index> =>
  JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')) as Index

const refName = 'org.opencontainers.image.ref.name'

test('a tag goes over to the image that is written last', async () => {
  await using folder = await temporaryFolder()
  const [first, second] = [await imageOf('1'), await imageOf('2')]
  await exportLayout(first, folder.path, ['1', 'latest'])
  await exportLayout(second, folder.path, ['2', 'latest'])
  await exportLayout(second, folder.path)
  await exportLayout(second, folder.path)
  const listed = (await indexOf(folder.path)).manifests.map((entry) => [entry.annotations?.[refName], entry.digest])
  expect(listed).toEqual([
    ['1', first.digest],
    ['latest', second.digest],
    ['2', second.digest],
    [undefined, second.digest],
  ])
})

test('an image without a tag comes back by its digest', async () => {
  await using folder = await temporaryFolder()
  const built = await imageOf('1')
  await exportLayout(built, folder.path)
  const client = memoryRegistry()
  expect(await importLayout(client, 'team/hello', folder.path)).toEqual([
    { mediaType: mediaTypes.manifest, digest: built.digest, size: built.manifest.length },
  ])
  expect(client.tagged.size).toBe(0)
})

test('a folder lists the index and the signatures, and not what the index lists', async () => {
  await using folder = await temporaryFolder()
  const client = memoryRegistry()
  const manifests = []
  for (const architecture of ['amd64', 'arm64']) {
    const platform = { os: 'linux', architecture }
    const built = await buildImage({ files: [{ path: 'a', content: architecture }], platform })
    manifests.push({ ...(await pushImage(client, 'team/hello', built, [])), platform })
  }
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }))
  const top = await client.putManifest('team/hello', '1', bytes, mediaTypes.index)
  const { privateKeyPem } = generateKeyPair()
  const tagged = await signImage(client, 'team/hello', manifests[1]!.digest, privateKeyPem, { layout: 'tag' })
  const referrer = await signImage(client, 'team/hello', top.digest, privateKeyPem)
  await saveLayout(client, 'team/hello', '1', folder.path)
  const listed = (await indexOf(folder.path)).manifests.map(({ digest }) => digest)
  expect(listed).toEqual([top.digest, tagged.digest, referrer.digest])
  expect(await importLayout(memoryRegistry(), 'far/away', folder.path)).toEqual([{ ...top, tag: '1' }])
})

test('what is larger than a layer may be is not read', async () => {
  await using folder = await temporaryFolder()
  const built = await imageOf('1')
  await exportLayout(built, folder.path)
  await truncate(join(folder.path, 'blobs', ...built.layers[0]!.descriptor.digest.split(':')), 256 * 2 ** 20 + 1)
  const refusal = importLayout(memoryRegistry(), 'team/hello', folder.path)
  await expect(refusal).rejects.toMatchObject({ problem: 'too_large' })
})

test('an index that cannot be read is not taken for an empty one', async () => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'index.json'), '{"manifests":')
  const built = await imageOf('1')
  const broken = { problem: 'invalid', message: `index.json in ${folder.path} is missing or broken.` }
  await expect(exportLayout(built, folder.path)).rejects.toMatchObject(broken)
  await expect(importLayout(memoryRegistry(), 'team/hello', folder.path)).rejects.toMatchObject(broken)
})

test.each([
  ['no JSON', 'no JSON'],
  ['neither a manifest nor an index', '{"schemaVersion":2}'],
  ['a manifest and an index at once', '{"schemaVersion":2,"manifests":[],"layers":[]}'],
])('what is listed and is %s is refused', async (_name, text) => {
  await using folder = await temporaryFolder()
  await exportLayout(await imageOf('1'), folder.path, ['1'])
  const entry = { mediaType: mediaTypes.manifest, digest: digestOf(text), size: text.length }
  await writeFile(join(folder.path, 'blobs', ...entry.digest.split(':')), text)
  await writeFile(join(folder.path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
  const client = memoryRegistry()
  await expect(importLayout(client, 'team/hello', folder.path)).rejects.toMatchObject({ problem: 'invalid' })
  expect(client.manifests.size).toBe(0)
})
