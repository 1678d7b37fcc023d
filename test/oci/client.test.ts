import { digestOf } from '@platform/oci/digest'
import { type Index, type Manifest, mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { all, blobOf, clientOf, failureOf, labels, pushBySkopeo } from './support.ts'

const noPeersReason = missingPrograms('docker-registry', 'skopeo')
const empty = { mediaType: mediaTypes.empty, digest: digestOf('{}'), size: 2 }
const image = { schemaVersion: 2 as const, mediaType: mediaTypes.manifest, config: empty, layers: [empty] }
const imageOf = (members: object) => Buffer.from(JSON.stringify({ ...image, ...members }))

describe.skipIf(noPeersReason !== '')(`a public registry${noPeersReason}`, () => {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  let digest: string

  beforeAll(async () => {
    registry = await startDockerRegistry()
    digest = await pushBySkopeo(registry.host)
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())

  test('resolves and reads an image of skopeo by tag and digest', async () => {
    const { client, sent } = clientOf(registry.host)
    const descriptor = await client.resolve('team/hello', '1.0.0')
    expect(descriptor).toEqual({ mediaType: mediaTypes.manifest, digest, size: expect.any(Number) })
    for (const reference of ['1.0.0', digest]) {
      const found = await client.manifest('team/hello', reference)
      expect(found?.descriptor).toEqual(descriptor)
      expect(found?.bytes.length).toBe(descriptor?.size)
      expect(found?.content).toEqual(JSON.parse(String(found?.bytes)))
    }
    expect(await client.resolve('team/hello', digest)).toEqual(descriptor)
    expect(sent.map((line) => line.split(' ')[0])).toEqual(['HEAD', 'GET', 'GET', 'HEAD'])
  })

  test('reads the configuration of an image as a blob', async () => {
    const { client } = clientOf(registry.host)
    const manifest = (await client.manifest('team/hello', '1.0.0'))?.content as Manifest
    const config = await client.blob('team/hello', manifest.config)
    expect(JSON.parse(config.toString())).toMatchObject({ config: { Labels: labels } })
    expect(await client.hasBlob('team/hello', manifest.config.digest)).toBe(true)
    expect(await client.hasBlob('team/hello', digestOf('nowhere'))).toBe(false)
  })

  test('reads an image of several platforms as an index', async () => {
    await using other = await startDockerRegistry()
    const top = await pushBySkopeo(other.host, ['amd64', 'arm64'])
    const found = await clientOf(other.host).client.manifest('team/hello', '1.0.0')
    expect(found?.descriptor).toMatchObject({ digest: top, mediaType: mediaTypes.index })
    const { manifests } = found!.content as Index
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64'])
  })

  test('returns undefined for missing manifests, and fails for missing blobs and repositories', async () => {
    const { client } = clientOf(registry.host)
    expect(await client.resolve('team/hello', '2.0.0')).toBeUndefined()
    expect(await client.manifest('team/hello', digestOf('nothing'))).toBeUndefined()
    expect(await client.manifest('nobody/nothing', 'latest')).toBeUndefined()
    const blob = await failureOf(client.blob('team/hello', blobOf('nowhere')))
    expect(blob).toMatchObject({ problem: 'not_found', message: expect.stringContaining('404 BLOB_UNKNOWN') })
    expect(await failureOf(all(client.tags('nobody/nothing')))).toMatchObject({ problem: 'not_found' })
  })

  test('lists repositories over several pages', async () => {
    await using other = await startDockerRegistry()
    const { client, sent } = clientOf(other.host)
    const names = Array.from({ length: 101 }, (_, index) => `many/number-${String(index).padStart(3, '0')}`)
    for (const name of names) await client.putBlob(name, Buffer.from('{}'))
    await client.putManifest(names[0]!, 'one', imageOf({}), mediaTypes.manifest)
    await client.putManifest(names[0]!, 'two', imageOf({}), mediaTypes.manifest)
    sent.length = 0
    expect(await all(client.repositories())).toEqual(names)
    expect(sent).toHaveLength(2)
    expect(await all(client.tags(names[0]!))).toEqual(['one', 'two'])
  })

  test('pushes images that skopeo can read', async () => {
    const { client } = clientOf(registry.host)
    const manifest = (await client.manifest('team/hello', '1.0.0'))!
    const { config, layers } = manifest.content as Manifest
    for (const blob of [config, ...layers]) {
      expect(await client.putBlob('team/copy', await client.blob('team/hello', blob))).toEqual({
        digest: blob.digest,
        size: blob.size,
      })
    }
    const sent = await client.putManifest('team/copy', 'mine', manifest.bytes, manifest.descriptor.mediaType)
    expect(sent).toEqual(manifest.descriptor)
    await using folder = await temporaryFolder()
    const source = `docker://${registry.host}/team/copy:mine`
    await outputOf('skopeo', 'copy', '--quiet', '--src-tls-verify=false', source, `dir:${folder.path}`)
    const seen = await outputOf('skopeo', 'inspect', '--tls-verify=false', source)
    expect(JSON.parse(seen)).toMatchObject({ Digest: digest, Labels: labels })
  })

  test('uploads a blob once, and mounts it if another repository has it', async () => {
    const { client, sent } = clientOf(registry.host)
    const bytes = Buffer.alloc(3_000_000, 'large')
    const methodsOf = async (work: () => Promise<unknown>) => {
      sent.length = 0
      await work()
      return sent.map((line) => line.split(' ')[0])
    }
    expect(await methodsOf(() => client.putBlob('one/blob', bytes))).toEqual(['HEAD', 'POST', 'PUT'])
    expect(await methodsOf(() => client.putBlob('one/blob', bytes))).toEqual(['HEAD'])
    expect(await methodsOf(() => client.putBlob('two/blob', bytes, { mountFrom: 'one/blob' }))).toEqual([
      'HEAD',
      'POST',
    ])
    const other = Buffer.from('in neither repository')
    const unmounted = () => client.putBlob('two/blob', other, { mountFrom: 'one/blob' })
    expect(await methodsOf(unmounted)).toEqual(['HEAD', 'POST', 'PUT'])
    const found = await client.blob('two/blob', { digest: digestOf(bytes), size: bytes.length })
    expect(found.equals(bytes)).toBe(true)
    await client.putBlob('two/blob', Buffer.alloc(0))
    expect(await client.blob('two/blob', { digest: digestOf(''), size: 0 })).toHaveLength(0)
  })

  test('lists referrers by type without the referrers API', async () => {
    const { client } = clientOf(registry.host)
    const subject = (await client.resolve('team/hello', '1.0.0'))!
    expect(await client.referrers('team/hello', digest)).toEqual([])
    await client.putBlob('team/hello', Buffer.from('{}'))
    const referrer = { ...image, subject }
    const annotations = { made: 'by hand' }
    const first = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/first', annotations })
    const second = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/second' })
    const again = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/second' })
    expect(again).toEqual(second)
    expect(first).toMatchObject({ artifactType: 'test/first', annotations, mediaType: mediaTypes.manifest })
    expect(await client.referrers('team/hello', digest)).toEqual([first, second])
    expect(await client.referrers('team/hello', digest, 'test/second')).toEqual([second])
    expect((await client.manifest('team/hello', second.digest))?.content).toMatchObject({ subject: { digest } })
  })

  test('keeps foreign entries and members of a referrers index', async () => {
    const { client } = clientOf(registry.host)
    await client.putBlob('team/others', Buffer.from('{}'))
    const subject = await client.putManifest('team/others', 'image', imageOf({}), mediaTypes.manifest)
    const theirs = { ...subject, artifactType: 'test/theirs', note: { deep: [1] } }
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [theirs], own: 'member' }
    const tag = subject.digest.replace(':', '-')
    await client.putManifest('team/others', tag, Buffer.from(JSON.stringify(index)), mediaTypes.index)
    const ours = await client.putReferrer('team/others', { ...image, artifactType: 'test/ours', subject })
    expect((await client.manifest('team/others', tag))?.content).toEqual({ ...index, manifests: [theirs, ours] })
  })

  test('removes a manifest by digest, repeatedly', async () => {
    const { client } = clientOf(registry.host)
    await client.putBlob('team/gone', Buffer.from('{}'))
    const sent = await client.putManifest('team/gone', 'once', imageOf({}), mediaTypes.manifest)
    await client.remove('team/gone', sent.digest)
    expect(await client.resolve('team/gone', 'once')).toBeUndefined()
    await client.remove('team/gone', sent.digest)
  })

  test('reports the error code of a rejected manifest', async () => {
    const { client } = clientOf(registry.host)
    const bytes = imageOf({ config: blobOf('nowhere') })
    const work = client.putManifest('team/hello', 'bad', bytes, mediaTypes.manifest)
    expect(await failureOf(work)).toMatchObject({
      problem: 'refused',
      message: expect.stringContaining('400 MANIFEST_BLOB_UNKNOWN'),
    })
  })
})
