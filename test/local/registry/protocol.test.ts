import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { missingPrograms, outputOf } from '../../support/installed-programs.ts'
import { writeLayout } from '../../support/oci-layout.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { waitFor } from '../../support/wait-for.ts'
import {
  errorCodeOf,
  digestOf,
  freshRegistry,
  manifestOf,
  password,
  pushBlob,
  pushImage,
  putManifest,
  type TestRegistry,
  writer,
} from './support.ts'

const uploads = '/v2/modules/hello/blobs/uploads/'

async function begin(registry: TestRegistry): Promise<string> {
  const response = await registry.send('POST', uploads)
  expect(response.status).toBe(202)
  return response.headers.get('location') ?? ''
}

const blobPath = (digest: string) => `/v2/modules/hello/blobs/${digest}`
const manifestPath = (reference: string) => `/v2/modules/hello/manifests/${reference}`

type Push = (registry: TestRegistry, content: Uint8Array, digest: string) => Promise<Response>

const pushes: Record<string, Push> = {
  'the first request': (registry, content, digest) => registry.send('POST', `${uploads}?digest=${digest}`, content),
  'the last request': async (registry, content, digest) =>
    registry.send('PUT', `${await begin(registry)}?digest=${digest}`, content),
  chunks: async (registry, content, digest) => {
    const upload = await begin(registry)
    const reply = await registry.send('PATCH', upload, content.subarray(0, 1000), { 'content-range': '0-999' })
    expect([reply.status, reply.headers.get('range'), reply.headers.get('location')]).toEqual([202, '0-999', upload])
    const nextReply = await registry.send('PATCH', upload, content.subarray(1000, 1500))
    expect([nextReply.status, nextReply.headers.get('range')]).toEqual([202, '0-1499'])
    const lastHeaders = { 'content-range': `1500-${content.length - 1}` }
    return registry.send('PUT', `${upload}?digest=${digest}`, content.subarray(1500), lastHeaders)
  },
  'a stream of unknown length': async (registry, content, digest) => {
    const upload = await begin(registry)
    const body = new Blob([Buffer.from(content)]).stream()
    const init: RequestInit & { duplex: 'half' } = { method: 'PATCH', headers: writer, body, duplex: 'half' }
    expect((await fetch(registry.url(upload), init)).status).toBe(202)
    return registry.send('PUT', `${upload}?digest=${digest}`)
  },
}

test.for(Object.entries(pushes))('accepts a blob in %s', async ([, push]) => {
  await using registry = await freshRegistry()
  for (const content of [randomBytes(300_000), randomBytes(1600)]) {
    const digest = digestOf(content)
    const response = await push(registry, content, digest)
    expect([response.status, response.headers.get('docker-content-digest')]).toEqual([201, digest])
    expect(response.headers.get('location')).toBe(blobPath(digest))
    const storedBlob = await registry.read(blobPath(digest))
    expect(Buffer.from(await storedBlob.arrayBuffer()).equals(content)).toBe(true)
  }
})

test('accepts an empty blob', async () => {
  await using registry = await freshRegistry()
  const digest = await pushBlob(registry, 'modules/hello', '')
  const storedBlob = await registry.read(blobPath(digest))
  expect([storedBlob.status, storedBlob.headers.get('content-length'), await storedBlob.text()]).toEqual([200, '0', ''])
})

test('rejects a chunk out of order with the current range, and continues the upload', async () => {
  await using registry = await freshRegistry()
  const upload = await begin(registry)
  await registry.send('PATCH', upload, 'hello ', { 'content-range': '0-5' })
  const repeatedPatch = await registry.send('PATCH', upload, 'hello ', { 'content-range': '0-5' })
  expect([repeatedPatch.status, repeatedPatch.headers.get('range')]).toEqual([416, '0-5'])
  const ahead = await registry.send('PATCH', upload, 'world', { 'content-range': '7-11' })
  expect(ahead.status).toBe(416)
  const state = await registry.send('GET', upload)
  expect([state.status, state.headers.get('range')]).toEqual([204, '0-5'])
  const digest = digestOf('hello world')
  expect((await registry.send('PUT', `${upload}?digest=${digest}`, 'world', { 'content-range': '6-10' })).status).toBe(
    201,
  )
})

test('keeps the part of an upload that arrived before a disconnect', async () => {
  await using registry = await freshRegistry()
  const upload = await begin(registry)
  const [hostname, port] = registry.host.split(':')
  const socket = connect(Number(port), hostname)
  const head = `PATCH ${upload} HTTP/1.1\r\nHost: ${registry.host}\r\nAuthorization: ${writer.authorization}\r\n`
  socket.write(`${head}Content-Length: 11\r\n\r\nhello `)
  await waitFor('the first part', async () => (await registry.send('GET', upload)).headers.get('range') === '0-5')
  socket.destroy()
  await waitFor('the end of the request', async () => (await registry.send('PATCH', upload, '')).status === 202)
  expect((await registry.send('PUT', `${upload}?digest=${digestOf('hello world')}`, 'world')).status).toBe(201)
})

test('rejects content with another digest, and removes it', async () => {
  await using registry = await freshRegistry()
  const upload = await begin(registry)
  const digest = digestOf('something else')
  const rejectedUpload = await registry.send('PUT', `${upload}?digest=${digest}`, 'content')
  expect([rejectedUpload.status, await errorCodeOf(rejectedUpload)]).toEqual([400, 'DIGEST_INVALID'])
  for (const namedDigest of [digest, digestOf('content')])
    expect((await registry.read(blobPath(namedDigest))).status).toBe(404)
  expect(await readdir(join(registry.folder, 'drafts'))).toEqual([])
  expect(await errorCodeOf(await registry.send('PATCH', upload, 'more'))).toBe('BLOB_UPLOAD_UNKNOWN')
})

test('an upload belongs to its repository, and can be cancelled', async () => {
  await using registry = await freshRegistry()
  const upload = await begin(registry)
  expect((await registry.send('PATCH', upload.replace('hello', 'other'), 'x')).status).toBe(404)
  expect((await registry.send('DELETE', upload)).status).toBe(204)
  expect((await registry.send('PATCH', upload, 'x')).status).toBe(404)
})

test('mounts a blob of another repository', async () => {
  await using registry = await freshRegistry()
  const digest = await pushBlob(registry, 'modules/hello', 'content')
  const otherBlobs = '/v2/modules/other/blobs'
  expect((await registry.read(`${otherBlobs}/${digest}`)).status).toBe(404)
  const mount = (from: string, requested = digest) =>
    registry.send('POST', `${otherBlobs}/uploads/?mount=${requested}&from=${from}`)
  expect((await mount('modules/unknown')).status).toBe(202)
  expect((await mount('modules/hello', digestOf('unknown'))).status).toBe(202)
  const response = await mount('modules/hello')
  expect([response.status, response.headers.get('location')]).toEqual([201, `${otherBlobs}/${digest}`])
  expect(await (await registry.read(`${otherBlobs}/${digest}`)).text()).toBe('content')
})

test('accepts concurrent pushes of the same content', async () => {
  await using registry = await freshRegistry()
  const sharedContent = randomBytes(200_000)
  const pushes = Array.from({ length: 20 }, async (_, index) => {
    await pushBlob(registry, `modules/m${index % 5}`, sharedContent)
    return pushImage(registry, `modules/m${index % 5}`, `v${index}`)
  })
  const images = await Promise.all(pushes)
  const responses = await Promise.all(
    images.map(({ digest }, index) => registry.read(`/v2/modules/m${index % 5}/manifests/${digest}`)),
  )
  expect(responses.map(({ status }) => status)).toEqual(images.map(() => 200))
  const blob = await registry.read(`/v2/modules/m3/blobs/${digestOf(sharedContent)}`)
  expect(Buffer.from(await blob.arrayBuffer()).equals(sharedContent)).toBe(true)
  expect(registry.failures).toEqual([])
})

const config = '{}'
const image = manifestOf(config, 'layer')
const imageAndIndex = manifestOf(config, 'layer', { manifests: [] as unknown[] })
const member = `"manifests":[{"digest":"${digestOf(config)}","size":2}]`

test.for([
  ['is not JSON', '{', 'MANIFEST_INVALID'],
  ['is a list', '[]', 'MANIFEST_INVALID'],
  ['has version 1', image.replace('"schemaVersion":2', '"schemaVersion":1'), 'MANIFEST_INVALID'],
  ['has another type than its header', image.replace(mediaTypes.manifest, mediaTypes.index), 'MANIFEST_INVALID'],
  ['has invalid annotations', image.replace('{', '{"annotations":null,'), 'MANIFEST_INVALID'],
  ['has an annotation that is not a string', image.replace('{', '{"annotations":{"n":1},'), 'MANIFEST_INVALID'],
  ['has an artifact type that is not a string', image.replace('{', '{"artifactType":1,'), 'MANIFEST_INVALID'],
  ['has no config', JSON.stringify({ schemaVersion: 2, layers: [] }), 'MANIFEST_INVALID'],
  ['is an image and an index', imageAndIndex.replace('"manifests":[]', member), 'MANIFEST_INVALID'],
  ['has an invalid digest', image.replaceAll('sha256:', 'sha256:../'), 'MANIFEST_INVALID'],
  ['names a missing blob', manifestOf(config, 'another layer'), 'MANIFEST_BLOB_UNKNOWN'],
] as const)('rejects a manifest that %s', async ([, manifest, code]) => {
  await using registry = await freshRegistry()
  for (const content of [config, 'layer']) await pushBlob(registry, 'modules/hello', content)
  expect((await putManifest(registry, 'modules/hello', 'good', image)).status).toBe(201)
  const rejectedManifest = await putManifest(registry, 'modules/hello', 'latest', manifest)
  expect([
    rejectedManifest.status >= 400 && rejectedManifest.status < 500,
    await errorCodeOf(rejectedManifest),
  ]).toEqual([true, code])
  expect((await registry.read('/v2/modules/hello/manifests/latest')).status).toBe(404)
})

test('rejects a manifest with another digest or an unsupported type', async () => {
  await using registry = await freshRegistry()
  const { manifest } = await pushImage(registry, 'modules/hello', 'latest')
  const wrongResponse = await putManifest(registry, 'modules/hello', digestOf('other'), manifest)
  expect([wrongResponse.status, await errorCodeOf(wrongResponse)]).toEqual([400, 'DIGEST_INVALID'])
  const oldMediaType = 'application/vnd.docker.distribution.manifest.v1+prettyjws'
  const untypedManifest = manifest.replace(`"mediaType":"${mediaTypes.manifest}",`, '')
  for (const type of [oldMediaType, 'application/json', '']) {
    expect(await errorCodeOf(await putManifest(registry, 'modules/hello', 'old', untypedManifest, type))).toBe(
      'MANIFEST_INVALID',
    )
  }
})

test('accepts an index of existing manifests only', async () => {
  await using registry = await freshRegistry()
  const { digest, manifest } = await pushImage(registry, 'modules/hello', 'linux')
  const indexOf = (named: string) =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.index,
      manifests: [{ mediaType: mediaTypes.manifest, digest: named, size: manifest.length }],
    })
  const put = (named: string) => putManifest(registry, 'modules/hello', 'latest', indexOf(named), mediaTypes.index)
  expect(await errorCodeOf(await put(digestOf('unknown')))).toBe('MANIFEST_BLOB_UNKNOWN')
  expect((await put(digest)).status).toBe(201)
  const storedManifest = await registry.read('/v2/modules/hello/manifests/latest')
  expect(storedManifest.headers.get('content-type')).toBe(mediaTypes.index)
})

test('rejects blobs and manifests above the size limits, and removes them', async () => {
  await using registry = await freshRegistry({ maxBlobBytes: 100_000 })
  const content = randomBytes(100_001)
  const direct = await registry.send('POST', `${uploads}?digest=${digestOf(content)}`, content)
  expect([direct.status, await errorCodeOf(direct)]).toEqual([413, 'SIZE_INVALID'])
  const upload = await begin(registry)
  expect((await registry.send('PATCH', upload, content.subarray(0, 60_000))).status).toBe(202)
  expect((await registry.send('PATCH', upload, content.subarray(0, 60_000))).status).toBe(413)
  expect((await registry.send('GET', upload)).status).toBe(404)
  await pushBlob(registry, 'modules/hello', content.subarray(1))
  const hugeManifest = manifestOf('{}', 'x', { annotations: { padding: 'x'.repeat(4 * 1024 * 1024) } })
  expect((await putManifest(registry, 'modules/hello', 'latest', hugeManifest)).status).toBe(413)
})

test('returns a manifest by tag and by digest, and its headers for HEAD', async () => {
  await using registry = await freshRegistry()
  const { manifest, digest } = await pushImage(registry, 'modules/hello', 'latest')
  for (const reference of ['latest', digest]) {
    const path = `/v2/modules/hello/manifests/${reference}`
    const [getResponse, headResponse] = [await registry.read(path), await fetch(registry.url(path), { method: 'HEAD' })]
    for (const response of [getResponse, headResponse]) {
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe(mediaTypes.manifest)
      expect(response.headers.get('docker-content-digest')).toBe(digest)
      expect(response.headers.get('content-length')).toBe(String(manifest.length))
    }
    expect([await getResponse.text(), await headResponse.text()]).toEqual([manifest, ''])
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
  ['bytes=11-', 416, 'bytes */11', undefined],
  ['bytes=11-12', 416, 'bytes */11', undefined],
  ['bytes=5-4', 416, 'bytes */11', undefined],
  ['bytes=-0', 416, 'bytes */11', undefined],
] as const)('returns the range %s of a blob with status %i', async ([range, status, contentRange, content]) => {
  await using registry = await freshRegistry()
  const digest = await pushBlob(registry, 'modules/hello', 'hello world')
  const response = await registry.read(`/v2/modules/hello/blobs/${digest}`, { range })
  expect([response.status, response.headers.get('content-range')]).toEqual([status, contentRange])
  if (content !== undefined) expect(await response.text()).toBe(content)
})

test('lists tags and repositories in pages with a link to the next', async () => {
  await using registry = await freshRegistry()
  const tags = ['1.0.0', '1.1.0', '1.2.0', 'Latest', 'latest']
  for (const tag of tags) await pushImage(registry, 'modules/hello', tag)
  for (const name of ['modules', 'modules/hello/inner', 'other/one']) await pushImage(registry, name, 'latest')
  await pushBlob(registry, 'blobs/only', 'no manifest')

  const follow = async (path: string, member: string): Promise<string[][]> => {
    const response = await registry.read(path)
    const body: any = await response.json()
    const next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
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
  expect(await errorCodeOf(await registry.read('/v2/_catalog?n=many'))).toBe('PAGINATION_NUMBER_INVALID')
})

test('lists the referrers of an image, pushed before or after it, filtered by type', async () => {
  await using registry = await freshRegistry()
  const subjectText = manifestOf('{"tag":"latest"}', 'layer of modules/hello:latest')
  const subject = { mediaType: mediaTypes.manifest, digest: digestOf(subjectText), size: subjectText.length }
  const refer = (tag: string, artifactType: string) =>
    pushImage(registry, 'modules/hello', tag, { subject, artifactType, annotations: { of: tag } })
  const earlyReferrer = await refer('early', 'example/signature')
  expect(earlyReferrer.response.headers.get('oci-subject')).toBe(subject.digest)
  expect((await pushImage(registry, 'modules/hello', 'latest')).digest).toBe(subject.digest)
  const lateReferrer = await refer('late', 'example/report')
  await pushImage(registry, 'modules/hello', 'unrelated')

  const list = async (path: string) => {
    const response = await registry.read(path)
    const { manifests }: any = await response.json()
    return {
      type: response.headers.get('content-type'),
      filtered: response.headers.get('oci-filters-applied'),
      manifests,
    }
  }
  const path = `/v2/modules/hello/referrers/${subject.digest}`
  const allReferrers = await list(path)
  expect(allReferrers.type).toBe(mediaTypes.index)
  expect(allReferrers.manifests.map(({ digest }: any) => digest).toSorted()).toEqual(
    [earlyReferrer.digest, lateReferrer.digest].toSorted(),
  )
  const signatures = await list(`${path}?artifactType=example/signature`)
  expect(signatures).toMatchObject({ filtered: 'artifactType' })
  expect(signatures.manifests).toEqual([
    {
      mediaType: mediaTypes.manifest,
      digest: earlyReferrer.digest,
      size: earlyReferrer.manifest.length,
      artifactType: 'example/signature',
      annotations: { of: 'early' },
    },
  ])
  await registry.send('DELETE', `/v2/modules/hello/manifests/${earlyReferrer.digest}`)
  expect((await list(path)).manifests.map(({ digest }: any) => digest)).toEqual([lateReferrer.digest])
  expect((await list(`/v2/modules/hello/referrers/${digestOf('unknown')}`)).manifests).toEqual([])
})

test('deletes a tag, a manifest with all its tags, and a blob of one repository', async () => {
  await using registry = await freshRegistry()
  const { manifest, digest, layer } = await pushImage(registry, 'modules/hello', 'latest')
  for (const tag of ['1.0.0', '1.0']) await putManifest(registry, 'modules/hello', tag, manifest)
  const otherDigest = await pushImage(registry, 'modules/hello', 'other')
  await registry.send('POST', `/v2/elsewhere/blobs/uploads/?mount=${digestOf(layer)}&from=modules/hello`)
  const tags = async () => ((await (await registry.read('/v2/modules/hello/tags/list')).json()) as any).tags

  expect((await registry.send('DELETE', manifestPath('1.0'))).status).toBe(202)
  expect(await tags()).toEqual(['1.0.0', 'latest', 'other'])
  expect((await registry.read(manifestPath(digest))).status).toBe(200)
  expect((await registry.send('DELETE', manifestPath(digest))).status).toBe(202)
  expect(await tags()).toEqual(['other'])
  for (const reference of [digest, 'latest']) expect((await registry.read(manifestPath(reference))).status).toBe(404)
  expect((await registry.read(manifestPath(otherDigest.digest))).status).toBe(200)

  const blob = (repository: string) => `/v2/${repository}/blobs/${digestOf(layer)}`
  expect((await registry.send('DELETE', blob('modules/hello'))).status).toBe(202)
  expect((await registry.read(blob('modules/hello'))).status).toBe(404)
  expect(await (await registry.read(blob('elsewhere'))).text()).toBe(layer)
  for (const deletedPath of [manifestPath(digest), manifestPath('latest'), blob('modules/hello')]) {
    expect((await registry.send('DELETE', deletedPath)).status).toBe(404)
  }
})

test('reports missing content with the codes of the specification', async () => {
  await using registry = await freshRegistry()
  await pushImage(registry, 'modules/hello', 'latest')
  const unknownDigest = digestOf('unknown')
  const expectCode = async (path: string, code: string) => {
    const response = await registry.read(path)
    expect([path, response.status, await errorCodeOf(response)]).toEqual([path, 404, code])
  }
  await expectCode('/v2/modules/hello/manifests/unknown', 'MANIFEST_UNKNOWN')
  await expectCode(`/v2/modules/hello/manifests/${unknownDigest}`, 'MANIFEST_UNKNOWN')
  await expectCode(`/v2/modules/hello/blobs/${unknownDigest}`, 'BLOB_UNKNOWN')
  await expectCode('/v2/modules/other/tags/list', 'NAME_UNKNOWN')
  const { digest, config } = await pushImage(registry, 'modules/hello', 'latest')
  await expectCode(`/v2/modules/hello/blobs/${digest}`, 'BLOB_UNKNOWN')
  await expectCode(`/v2/modules/hello/manifests/${digestOf(config)}`, 'MANIFEST_UNKNOWN')
})

const skopeo = (...args: string[]): Promise<string> => outputOf('skopeo', '--insecure-policy', ...args)

test.skipIf(missingPrograms('skopeo') !== '')('skopeo copies, inspects, lists and deletes images', async () => {
  await using folder = await temporaryFolder()
  await using registry = await freshRegistry()
  const [source, target] = ['source', 'target'].map((name) => join(folder.path, name)) as [string, string]
  await mkdir(source)
  await writeLayout(source, { 'org.platform.module': 'true' })
  const { digest } = JSON.parse(await readFile(join(source, 'index.json'), 'utf8')).manifests[0]
  const image = `docker://${registry.host}/modules/hello:1.0.0`
  const copy = `docker://${registry.host}/modules/copy:latest`
  const credentials = `platform:${password}`
  const args = ['--dest-tls-verify=false', `oci:${source}:latest`, image]

  await expect(skopeo('copy', '-q', ...args)).rejects.toThrow('unauthorized')
  await expect(skopeo('copy', '-q', '--dest-creds', 'platform:wrong', ...args)).rejects.toThrow('unauthorized')
  await skopeo('copy', '-q', '--dest-creds', credentials, ...args)
  const inspection = JSON.parse(await skopeo('inspect', '--tls-verify=false', image))
  expect(inspection).toMatchObject({ Digest: digest, Labels: { 'org.platform.module': 'true' }, RepoTags: ['1.0.0'] })

  const skopeoOptions = ['--src-tls-verify=false', '--dest-tls-verify=false', '--dest-creds', credentials]
  await skopeo('copy', '-q', ...skopeoOptions, image, copy)
  await skopeo('copy', '-q', '--src-tls-verify=false', copy, `oci:${target}:1.0.0`)
  const name = join('blobs/sha256', digest.slice(7))
  expect(await readFile(join(target, name), 'utf8')).toBe(await readFile(join(source, name), 'utf8'))

  await skopeo('delete', '--tls-verify=false', '--creds', credentials, copy)
  const tags = async (repository: string) =>
    JSON.parse(await skopeo('list-tags', '--tls-verify=false', `docker://${registry.host}/${repository}`)).Tags
  expect([await tags('modules/hello'), await tags('modules/copy')]).toEqual([['1.0.0'], []])
  expect(registry.failures).toEqual([])
})
