import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { codeOf, digestOf, freshRegistry, manifestOf, pushBlob, pushImage, putManifest } from './support.ts'

test('a manifest is read by tag and by digest, whole and by its head', async () => {
  await using registry = await freshRegistry()
  const { manifest, digest } = await pushImage(registry, 'modules/hello', 'latest')
  for (const reference of ['latest', digest]) {
    const path = `/v2/modules/hello/manifests/${reference}`
    const [whole, head] = [await registry.read(path), await fetch(registry.url(path), { method: 'HEAD' })]
    for (const answer of [whole, head]) {
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe(mediaTypes.manifest)
      expect(answer.headers.get('docker-content-digest')).toBe(digest)
      expect(answer.headers.get('content-length')).toBe(String(manifest.length))
    }
    expect([await whole.text(), await head.text()]).toEqual([manifest, ''])
  }
})

test.for([
  ['bytes=0-4', 206, 'bytes 0-4/11', 'hello'],
  ['bytes=6-', 206, 'bytes 6-10/11', 'world'],
  ['bytes=6-100', 206, 'bytes 6-10/11', 'world'],
  ['bytes=-5', 206, 'bytes 6-10/11', 'world'],
  ['bytes=-100', 206, 'bytes 0-10/11', 'hello world'],
  ['bytes=0-1,3-4', 200, null, 'hello world'],
  ['lines=1-2', 200, null, 'hello world'],
] as const)(
  'the part %s of a blob is answered as a resumed download needs it',
  async ([range, status, part, content]) => {
    await using registry = await freshRegistry()
    const digest = await pushBlob(registry, 'modules/hello', 'hello world')
    const answer = await registry.read(`/v2/modules/hello/blobs/${digest}`, { range })
    expect([answer.status, answer.headers.get('content-range'), await answer.text()]).toEqual([status, part, content])
  },
)

test.for(['bytes=11-', 'bytes=11-12', 'bytes=5-4', 'bytes=-0'])(
  'the part %s that is not there is refused',
  async (range) => {
    await using registry = await freshRegistry()
    const digest = await pushBlob(registry, 'modules/hello', 'hello world')
    const answer = await registry.read(`/v2/modules/hello/blobs/${digest}`, { range })
    expect([answer.status, answer.headers.get('content-range')]).toEqual([416, 'bytes */11'])
  },
)

test('tags and repositories are listed in pages, each leading to the next', async () => {
  await using registry = await freshRegistry()
  const tags = ['1.0.0', '1.1.0', '1.2.0', 'Latest', 'latest']
  for (const tag of tags) await pushImage(registry, 'modules/hello', tag)
  for (const name of ['modules', 'modules/hello/inner', 'other/one']) await pushImage(registry, name, 'latest')
  await pushBlob(registry, 'blobs/only', 'no manifest')

  const follow = async (path: string, member: string): Promise<string[][]> => {
    const answer = await registry.read(path)
    const body: any = await answer.json()
    const next = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
    return [body[member], ...(next === undefined ? [] : await follow(next, member))]
  }
  expect(await follow('/v2/modules/hello/tags/list?n=2', 'tags')).toEqual([
    ['1.0.0', '1.1.0'],
    ['1.2.0', 'Latest'],
    ['latest'],
  ])
  expect(await follow('/v2/modules/hello/tags/list?n=5', 'tags')).toEqual([tags])
  expect(await follow('/v2/modules/hello/tags/list?n=0', 'tags')).toEqual([[]])
  expect(await follow('/v2/modules/hello/tags/list?last=1.2.0', 'tags')).toEqual([['Latest', 'latest']])
  const repositories = ['modules', 'modules/hello', 'modules/hello/inner', 'other/one']
  expect(await follow('/v2/_catalog', 'repositories')).toEqual([repositories])
  expect((await follow('/v2/_catalog?n=1', 'repositories')).flat()).toEqual(repositories)
  expect(await codeOf(await registry.read('/v2/_catalog?n=many'))).toBe('PAGINATION_NUMBER_INVALID')
})

test('what refers to an image is listed with it, whether it came before or after, and filtered by its type', async () => {
  await using registry = await freshRegistry()
  const subjectText = manifestOf('{"tag":"latest"}', 'layer of modules/hello:latest')
  const subject = { mediaType: mediaTypes.manifest, digest: digestOf(subjectText), size: subjectText.length }
  const refer = (tag: string, artifactType: string) =>
    pushImage(registry, 'modules/hello', tag, { subject, artifactType, annotations: { of: tag } })
  const early = await refer('early', 'example/signature')
  expect(early.answer.headers.get('oci-subject')).toBe(subject.digest)
  expect((await pushImage(registry, 'modules/hello', 'latest')).digest).toBe(subject.digest)
  const late = await refer('late', 'example/report')
  await pushImage(registry, 'modules/hello', 'unrelated')

  const list = async (path: string) => {
    const answer = await registry.read(path)
    const { manifests }: any = await answer.json()
    return { type: answer.headers.get('content-type'), filtered: answer.headers.get('oci-filters-applied'), manifests }
  }
  const path = `/v2/modules/hello/referrers/${subject.digest}`
  const all = await list(path)
  expect(all.type).toBe(mediaTypes.index)
  expect(all.manifests.map(({ digest }: any) => digest).toSorted()).toEqual([early.digest, late.digest].toSorted())
  const signatures = await list(`${path}?artifactType=example/signature`)
  expect(signatures).toMatchObject({ filtered: 'artifactType' })
  expect(signatures.manifests).toEqual([
    {
      mediaType: mediaTypes.manifest,
      digest: early.digest,
      size: early.manifest.length,
      artifactType: 'example/signature',
      annotations: { of: 'early' },
    },
  ])
  await registry.send('DELETE', `/v2/modules/hello/manifests/${early.digest}`)
  expect((await list(path)).manifests.map(({ digest }: any) => digest)).toEqual([late.digest])
  expect((await list(`/v2/modules/hello/referrers/${digestOf('unknown')}`)).manifests).toEqual([])
})

const path = (reference: string) => `/v2/modules/hello/manifests/${reference}`

test('a tag goes alone, a manifest with all its tags, and a blob from its repository', async () => {
  await using registry = await freshRegistry()
  const { manifest, digest, layer } = await pushImage(registry, 'modules/hello', 'latest')
  for (const tag of ['1.0.0', '1.0']) await putManifest(registry, 'modules/hello', tag, manifest)
  const other = await pushImage(registry, 'modules/hello', 'other')
  await registry.send('POST', `/v2/elsewhere/blobs/uploads/?mount=${digestOf(layer)}&from=modules/hello`)
  const tags = async () => ((await (await registry.read('/v2/modules/hello/tags/list')).json()) as any).tags

  expect((await registry.send('DELETE', path('1.0'))).status).toBe(202)
  expect(await tags()).toEqual(['1.0.0', 'latest', 'other'])
  expect((await registry.read(path(digest))).status).toBe(200)
  expect((await registry.send('DELETE', path(digest))).status).toBe(202)
  expect(await tags()).toEqual(['other'])
  for (const reference of [digest, 'latest']) expect((await registry.read(path(reference))).status).toBe(404)
  expect((await registry.read(path(other.digest))).status).toBe(200)

  const blob = (repository: string) => `/v2/${repository}/blobs/${digestOf(layer)}`
  expect((await registry.send('DELETE', blob('modules/hello'))).status).toBe(202)
  expect((await registry.read(blob('modules/hello'))).status).toBe(404)
  expect(await (await registry.read(blob('elsewhere'))).text()).toBe(layer)
  for (const gone of [path(digest), path('latest'), blob('modules/hello')]) {
    expect((await registry.send('DELETE', gone)).status).toBe(404)
  }
})

test('what is not there is told in the words of the specification', async () => {
  await using registry = await freshRegistry()
  await pushImage(registry, 'modules/hello', 'latest')
  const unknown = digestOf('unknown')
  const expectCode = async (path: string, code: string) => {
    const answer = await registry.read(path)
    expect([path, answer.status, await codeOf(answer)]).toEqual([path, 404, code])
  }
  await expectCode('/v2/modules/hello/manifests/unknown', 'MANIFEST_UNKNOWN')
  await expectCode(`/v2/modules/hello/manifests/${unknown}`, 'MANIFEST_UNKNOWN')
  await expectCode(`/v2/modules/hello/blobs/${unknown}`, 'BLOB_UNKNOWN')
  await expectCode('/v2/modules/other/tags/list', 'NAME_UNKNOWN')
  // The digest of a manifest is no blob, and the other way round.
  const { digest, config } = await pushImage(registry, 'modules/hello', 'latest')
  await expectCode(`/v2/modules/hello/blobs/${digest}`, 'BLOB_UNKNOWN')
  await expectCode(`/v2/modules/hello/manifests/${digestOf(config)}`, 'MANIFEST_UNKNOWN')
})
