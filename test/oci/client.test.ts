import { digestOf } from '@platform/oci/digest'
import { type Index, type Manifest, mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordGuard, startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { startTokenServer, type TokenServer } from '../support/token-server.ts'
import { ada, all, blobOf, clientOf, failureOf, labels, pushBySkopeo, useRegistry } from './support.ts'

const noPeersReason = missingPrograms('docker-registry', 'skopeo')
const emptyDescriptor = { mediaType: mediaTypes.empty, digest: digestOf('{}'), size: 2 }
const image = {
  schemaVersion: 2 as const,
  mediaType: mediaTypes.manifest,
  config: emptyDescriptor,
  layers: [emptyDescriptor],
}
const imageOf = (members: object) => Buffer.from(JSON.stringify({ ...image, ...members }))

describe.skipIf(noPeersReason !== '')(`a public registry${noPeersReason}`, () => {
  const registry = useRegistry()
  let digest: string
  beforeAll(async () => {
    digest = await pushBySkopeo(registry.host)
  })

  test('resolves and reads an image of skopeo by tag and digest', async () => {
    const { client, sent } = clientOf(registry.host)
    const descriptor = await client.resolve('team/hello', '1.0.0')
    expect(descriptor).toEqual({ mediaType: mediaTypes.manifest, digest, size: expect.any(Number) })
    for (const reference of ['1.0.0', digest]) {
      const manifest = await client.manifest('team/hello', reference)
      expect(manifest?.descriptor).toEqual(descriptor)
      expect(manifest?.bytes.length).toBe(descriptor?.size)
      expect(manifest?.content).toEqual(JSON.parse(String(manifest?.bytes)))
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
    await using otherRegistry = await startDockerRegistry()
    const topImage = await pushBySkopeo(otherRegistry.host, ['amd64', 'arm64'])
    const index = await clientOf(otherRegistry.host).client.manifest('team/hello', '1.0.0')
    expect(index?.descriptor).toMatchObject({ digest: topImage, mediaType: mediaTypes.index })
    const { manifests } = index!.content as Index
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64'])
  })

  test('returns undefined for missing manifests, and fails for missing blobs and repositories', async () => {
    const { client } = clientOf(registry.host)
    expect(await client.resolve('team/hello', '2.0.0')).toBeUndefined()
    expect(await client.manifest('team/hello', digestOf('nothing'))).toBeUndefined()
    expect(await client.manifest('missing/repository', 'latest')).toBeUndefined()
    const blob = await failureOf(client.blob('team/hello', blobOf('nowhere')))
    expect(blob).toMatchObject({ problem: 'not_found', message: expect.stringContaining('404 BLOB_UNKNOWN') })
    expect(await failureOf(all(client.tags('missing/repository')))).toMatchObject({ problem: 'not_found' })
  })

  test('lists repositories over several pages', async () => {
    await using otherRegistry = await startDockerRegistry()
    const { client, sent } = clientOf(otherRegistry.host)
    const names = Array.from({ length: 101 }, (_, index) => `many/number-${String(index).padStart(3, '0')}`)
    for (const name of names) await client.putBlob(name, Buffer.from('{}'))
    await client.putManifest(names[0]!, 'one', imageOf({}), mediaTypes.manifest)
    await client.putManifest(names[0]!, 'two', imageOf({}), mediaTypes.manifest)
    sent.length = 0
    expect(await all(client.repositories())).toEqual(names)
    expect(sent).toHaveLength(2)
    // The registry lists tags in the order of their folders, which depends on the file system.
    expect((await all(client.tags(names[0]!))).toSorted()).toEqual(['one', 'two'])
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
    const mount = () => client.putBlob('two/blob', bytes, { mountFrom: 'one/blob' })
    expect(await methodsOf(mount)).toEqual(['HEAD', 'POST'])
    const otherBytes = Buffer.from('in neither repository')
    const putUnmounted = () => client.putBlob('two/blob', otherBytes, { mountFrom: 'one/blob' })
    expect(await methodsOf(putUnmounted)).toEqual(['HEAD', 'POST', 'PUT'])
    const mountedBlob = await client.blob('two/blob', { digest: digestOf(bytes), size: bytes.length })
    expect(mountedBlob.equals(bytes)).toBe(true)
    await client.putBlob('two/blob', Buffer.alloc(0))
    expect(await client.blob('two/blob', { digest: digestOf(''), size: 0 })).toHaveLength(0)
  })

  test('lists referrers by type without the referrers API', async () => {
    const { client } = clientOf(registry.host)
    const subject = (await client.resolve('team/hello', '1.0.0'))!
    expect(await client.referrers('team/hello', digest)).toEqual([])
    await client.putBlob('team/hello', Buffer.from('{}'))
    const referrer = { ...image, subject }
    const annotations = { source: 'manual' }
    const first = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/first', annotations })
    const second = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/second' })
    const secondReferrer = await client.putReferrer('team/hello', { ...referrer, artifactType: 'test/second' })
    expect(secondReferrer).toEqual(second)
    expect(first).toMatchObject({ artifactType: 'test/first', annotations, mediaType: mediaTypes.manifest })
    expect(await client.referrers('team/hello', digest)).toEqual([first, second])
    expect(await client.referrers('team/hello', digest, 'test/second')).toEqual([second])
    expect((await client.manifest('team/hello', second.digest))?.content).toMatchObject({ subject: { digest } })
  })

  test('keeps foreign entries and members of a referrers index', async () => {
    const { client } = clientOf(registry.host)
    await client.putBlob('team/others', Buffer.from('{}'))
    const subject = await client.putManifest('team/others', 'image', imageOf({}), mediaTypes.manifest)
    const theirReferrer = { ...subject, artifactType: 'test/theirs', note: { deep: [1] } }
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [theirReferrer], extension: 'value' }
    const tag = subject.digest.replace(':', '-')
    await client.putManifest('team/others', tag, Buffer.from(JSON.stringify(index)), mediaTypes.index)
    const ourReferrer = await client.putReferrer('team/others', { ...image, artifactType: 'test/ours', subject })
    expect((await client.manifest('team/others', tag))?.content).toEqual({
      ...index,
      manifests: [theirReferrer, ourReferrer],
    })
  })

  test('removes a manifest by digest, repeatedly', async () => {
    const { client } = clientOf(registry.host)
    await client.putBlob('team/gone', Buffer.from('{}'))
    const lostManifest = await client.putManifest('team/gone', 'once', imageOf({}), mediaTypes.manifest)
    await client.remove('team/gone', lostManifest.digest)
    expect(await client.resolve('team/gone', 'once')).toBeUndefined()
    await client.remove('team/gone', lostManifest.digest)
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

const wrongCredentials = async () => ({ ...ada, password: 'wrong staple' })

async function expectAccess(host: string): Promise<void> {
  const digest = await pushBySkopeo(host)
  const { client } = clientOf(host, { credentials: async () => ada })
  expect(await client.resolve('team/hello', '1.0.0')).toMatchObject({ digest })
  expect(await all(client.tags('team/hello'))).toEqual(['1.0.0'])
  await client.putBlob('team/hello', Buffer.from('pushed'))
  expect(await client.blob('team/hello', blobOf('pushed'))).toEqual(Buffer.from('pushed'))
  expect(await client.putBlob('team/other', Buffer.from('pushed'), { mountFrom: 'team/hello' })).toMatchObject({
    size: 6,
  })
  const manifest = (await client.manifest('team/hello', '1.0.0'))!
  expect(await client.putManifest('team/hello', 'again', manifest.bytes, mediaTypes.manifest)).toMatchObject({ digest })
  expect(await all(client.repositories())).toEqual(['team/hello', 'team/other'])
  await client.remove('team/hello', digest)
  expect(await client.resolve('team/hello', 'again')).toBeUndefined()
}

async function expectNoAccessWithoutCredentials(host: string): Promise<void> {
  const anonymous = await failureOf(clientOf(host).client.resolve('team/hello', '1.0.0'))
  expect(anonymous.problem).toBe('unauthorized')
  const credentialsError = await failureOf(
    clientOf(host, { credentials: wrongCredentials }).client.resolve('team/hello', '1.0.0'),
  )
  expect(credentialsError).toMatchObject({
    problem: 'unauthorized',
    message: expect.stringContaining('Check the credentials'),
  })
}

let tokens: TokenServer | undefined
const noTokensReason = missingPrograms('docker-registry', 'skopeo', 'openssl')

describe.skipIf(noTokensReason !== '')(`a private registry${noTokensReason}`, () => {
  beforeAll(async () => {
    tokens = await startTokenServer()
  })
  afterAll(() => tokens?.[Symbol.asyncDispose]())

  describe.each([
    ['Basic', () => passwordGuard],
    ['token', () => tokens?.guard],
  ])('with %s authentication', (scheme, guard) => {
    const registry = useRegistry(guard)

    test('accepts all operations with credentials', () => expectAccess(registry.host))
    test('rejects missing or wrong credentials', () => expectNoAccessWithoutCredentials(registry.host))

    test('authenticates once per scope', async () => {
      tokens?.granted.splice(0)
      const { client, sent } = clientOf(registry.host, { credentials: async () => ada })
      for (let count = 0; count < 3; count += 1) await client.resolve('team/hello', 'latest')
      expect(sent).toHaveLength(scheme === 'token' ? 5 : 4)
      await client.putBlob('team/mounted', Buffer.from('pushed'), { mountFrom: 'team/hello' })
      const scopes = [
        ['repository:team/hello:pull'],
        ['repository:team/mounted:pull,push'],
        ['repository:team/mounted:pull,push', 'repository:team/hello:pull'],
      ]
      expect(tokens?.granted).toEqual(scheme === 'token' ? scopes : [])
    })
  })
})
