import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import {
  codeOf,
  digestOf,
  freshRegistry,
  manifestOf,
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

test.for([
  [
    'in the request that begins it',
    async (registry: TestRegistry, content: Uint8Array, digest: string) =>
      registry.send('POST', `${uploads}?digest=${digest}`, content),
  ],
  [
    'in the request that ends it',
    async (registry: TestRegistry, content: Uint8Array, digest: string) =>
      registry.send('PUT', `${await begin(registry)}?digest=${digest}`, content),
  ],
  [
    'in chunks, and the last one in the request that ends it',
    async (registry: TestRegistry, content: Uint8Array, digest: string) => {
      const place = await begin(registry)
      const range = { 'content-range': '0-999' }
      const first = await registry.send('PATCH', place, content.subarray(0, 1000), range)
      expect([first.status, first.headers.get('range'), first.headers.get('location')]).toEqual([202, '0-999', place])
      const second = await registry.send('PATCH', place, content.subarray(1000, 1500))
      expect([second.status, second.headers.get('range')]).toEqual([202, '0-1499'])
      return registry.send('PUT', `${place}?digest=${digest}`, content.subarray(1500), {
        'content-range': `1500-${content.length - 1}`,
      })
    },
  ],
  [
    'in a stream of unknown length',
    async (registry: TestRegistry, content: Uint8Array, digest: string) => {
      const place = await begin(registry)
      const body = new Blob([Buffer.from(content)]).stream()
      const init: RequestInit & { duplex: 'half' } = { method: 'PATCH', headers: writer, body, duplex: 'half' }
      expect((await fetch(registry.url(place), init)).status).toBe(202)
      return registry.send('PUT', `${place}?digest=${digest}`)
    },
  ],
] as const)('a blob may come %s', async ([, push]) => {
  await using registry = await freshRegistry()
  const content = randomBytes(300_000)
  const digest = digestOf(content)
  const answer = await push(registry, content, digest)
  expect([answer.status, answer.headers.get('location'), answer.headers.get('docker-content-digest')]).toEqual([
    201,
    blobPath(digest),
    digest,
  ])
  const found = await registry.read(blobPath(digest))
  expect(Buffer.from(await found.arrayBuffer()).equals(content)).toBe(true)
})

test('an empty blob is a blob', async () => {
  await using registry = await freshRegistry()
  const digest = await pushBlob(registry, 'modules/hello', '')
  const found = await registry.read(blobPath(digest))
  expect([found.status, found.headers.get('content-length'), await found.text()]).toEqual([200, '0', ''])
})

test('a chunk out of order is refused and told where to go on, and the upload can still be ended', async () => {
  await using registry = await freshRegistry()
  const place = await begin(registry)
  await registry.send('PATCH', place, 'hello ', { 'content-range': '0-5' })
  const repeated = await registry.send('PATCH', place, 'hello ', { 'content-range': '0-5' })
  expect([repeated.status, repeated.headers.get('range')]).toEqual([416, '0-5'])
  const ahead = await registry.send('PATCH', place, 'world', { 'content-range': '7-11' })
  expect(ahead.status).toBe(416)
  const state = await registry.send('GET', place)
  expect([state.status, state.headers.get('range')]).toEqual([204, '0-5'])
  const digest = digestOf('hello world')
  expect((await registry.send('PUT', `${place}?digest=${digest}`, 'world', { 'content-range': '6-10' })).status).toBe(
    201,
  )
})

test('what arrived before the sender broke off stays, and the rest completes it', async () => {
  await using registry = await freshRegistry()
  const place = await begin(registry)
  const [hostname, port] = registry.host.split(':')
  const socket = connect(Number(port), hostname)
  const head = `PATCH ${place} HTTP/1.1\r\nHost: ${registry.host}\r\nAuthorization: ${writer.authorization}\r\nContent-Length: 11\r\n\r\n`
  socket.write(`${head}hello `)
  const rangeIs = async (range: string) =>
    (await registry.send('GET', place)).headers.get('range') === range ? true : undefined
  await waitFor('the first part is there', () => rangeIs('0-5'))
  socket.destroy()
  const digest = digestOf('hello world')
  await waitFor('the connection is known to be gone', async () =>
    (await registry.send('PATCH', place, '')).status === 202 ? true : undefined,
  )
  expect((await registry.send('PUT', `${place}?digest=${digest}`, 'world')).status).toBe(201)
})

test('content under a wrong digest is refused, and nothing of it stays', async () => {
  await using registry = await freshRegistry()
  const place = await begin(registry)
  const digest = digestOf('something else')
  const refused = await registry.send('PUT', `${place}?digest=${digest}`, 'content')
  expect([refused.status, await codeOf(refused)]).toEqual([400, 'DIGEST_INVALID'])
  for (const named of [digest, digestOf('content')]) expect((await registry.read(blobPath(named))).status).toBe(404)
  expect(await readdir(join(registry.folder, 'drafts'))).toEqual([])
  expect(await codeOf(await registry.send('PATCH', place, 'more'))).toBe('BLOB_UPLOAD_UNKNOWN')
})

test('an upload can be given up, and belongs to its repository', async () => {
  await using registry = await freshRegistry()
  const place = await begin(registry)
  expect((await registry.send('PATCH', place.replace('hello', 'other'), 'x')).status).toBe(404)
  expect((await registry.send('DELETE', place)).status).toBe(204)
  expect((await registry.send('PATCH', place, 'x')).status).toBe(404)
})

test('a blob of one repository is mounted into another without being sent', async () => {
  await using registry = await freshRegistry()
  const digest = await pushBlob(registry, 'modules/hello', 'content')
  const elsewhere = '/v2/modules/other/blobs'
  expect((await registry.read(`${elsewhere}/${digest}`)).status).toBe(404)
  const mount = (from: string, asked = digest) =>
    registry.send('POST', `${elsewhere}/uploads/?mount=${asked}&from=${from}`)
  expect((await mount('modules/unknown')).status).toBe(202)
  expect((await mount('modules/hello', digestOf('unknown'))).status).toBe(202)
  const mounted = await mount('modules/hello')
  expect([mounted.status, mounted.headers.get('location')]).toEqual([201, `${elsewhere}/${digest}`])
  expect(await (await registry.read(`${elsewhere}/${digest}`)).text()).toBe('content')
})

test('a tag moves to the manifest that was pushed last, and the one before stays by its digest', async () => {
  await using registry = await freshRegistry()
  const first = await pushImage(registry, 'modules/hello', 'latest')
  const second = await pushImage(registry, 'modules/hello', 'latest', { annotations: { build: '2' } })
  expect(second.answer.headers.get('docker-content-digest')).toBe(second.digest)
  const read = async (reference: string) => (await registry.read(`/v2/modules/hello/manifests/${reference}`)).text()
  expect(await read('latest')).toBe(second.manifest)
  expect(await read(first.digest)).toBe(first.manifest)
})

test('many pushes at once, some of the same content, are all whole', async () => {
  await using registry = await freshRegistry()
  const shared = randomBytes(200_000)
  const pushes = Array.from({ length: 20 }, async (_, index) => {
    await pushBlob(registry, `modules/m${index % 5}`, shared)
    return pushImage(registry, `modules/m${index % 5}`, `v${index}`)
  })
  const images = await Promise.all(pushes)
  const found = await Promise.all(
    images.map(({ digest }, index) => registry.read(`/v2/modules/m${index % 5}/manifests/${digest}`)),
  )
  expect(found.map(({ status }) => status)).toEqual(images.map(() => 200))
  const blob = await registry.read(`/v2/modules/m3/blobs/${digestOf(shared)}`)
  expect(Buffer.from(await blob.arrayBuffer()).equals(shared)).toBe(true)
  expect(registry.failures).toEqual([])
})

const config = '{}'
const image = manifestOf(config, 'layer')
const both = manifestOf(config, 'layer', { manifests: [] as unknown[] })

test.for([
  ['is no JSON', '{', 'MANIFEST_INVALID'],
  ['is a list', '[]', 'MANIFEST_INVALID'],
  ['is of version 1', image.replace('"schemaVersion":2', '"schemaVersion":1'), 'MANIFEST_INVALID'],
  ['says another type than its header', image.replace(mediaTypes.manifest, mediaTypes.index), 'MANIFEST_INVALID'],
  ['has annotations that are none', image.replace('{', '{"annotations":null,'), 'MANIFEST_INVALID'],
  ['has an annotation that is no text', image.replace('{', '{"annotations":{"n":1},'), 'MANIFEST_INVALID'],
  ['has a type that is no text', image.replace('{', '{"artifactType":1,'), 'MANIFEST_INVALID'],
  ['has no config', JSON.stringify({ schemaVersion: 2, layers: [] }), 'MANIFEST_INVALID'],
  [
    'is image and index in one',
    both.replace('"manifests":[]', `"manifests":[{"digest":"${digestOf(config)}","size":2}]`),
    'MANIFEST_INVALID',
  ],
  ['names a digest that is none', image.replaceAll('sha256:', 'sha256:../'), 'MANIFEST_INVALID'],
  ['names a blob that the repository does not have', manifestOf(config, 'another layer'), 'MANIFEST_BLOB_UNKNOWN'],
] as const)('a manifest that %s is refused', async ([, manifest, code]) => {
  await using registry = await freshRegistry()
  for (const content of [config, 'layer']) await pushBlob(registry, 'modules/hello', content)
  expect((await putManifest(registry, 'modules/hello', 'good', image)).status).toBe(201)
  const refused = await putManifest(registry, 'modules/hello', 'latest', manifest)
  expect([refused.status >= 400 && refused.status < 500, await codeOf(refused)]).toEqual([true, code])
  expect((await registry.read('/v2/modules/hello/manifests/latest')).status).toBe(404)
})

test('a manifest under another digest than its own, and one of a type that nobody runs, are refused', async () => {
  await using registry = await freshRegistry()
  const { manifest } = await pushImage(registry, 'modules/hello', 'latest')
  const wrong = await putManifest(registry, 'modules/hello', digestOf('other'), manifest)
  expect([wrong.status, await codeOf(wrong)]).toEqual([400, 'DIGEST_INVALID'])
  const old = 'application/vnd.docker.distribution.manifest.v1+prettyjws'
  const untyped = manifest.replace(`"mediaType":"${mediaTypes.manifest}",`, '')
  for (const type of [old, 'application/json', '']) {
    expect(await codeOf(await putManifest(registry, 'modules/hello', 'old', untyped, type))).toBe('MANIFEST_INVALID')
  }
})

test('an index names manifests that the repository has', async () => {
  await using registry = await freshRegistry()
  const { digest, manifest } = await pushImage(registry, 'modules/hello', 'linux')
  const indexOf = (named: string) =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.index,
      manifests: [{ mediaType: mediaTypes.manifest, digest: named, size: manifest.length }],
    })
  const put = (named: string) => putManifest(registry, 'modules/hello', 'latest', indexOf(named), mediaTypes.index)
  expect(await codeOf(await put(digestOf('unknown')))).toBe('MANIFEST_BLOB_UNKNOWN')
  expect((await put(digest)).status).toBe(201)
  const found = await registry.read('/v2/modules/hello/manifests/latest')
  expect(found.headers.get('content-type')).toBe(mediaTypes.index)
})

test('what is larger than the limits is refused, and nothing of it stays', async () => {
  await using registry = await freshRegistry({ maximumBlobBytes: 100_000 })
  const content = randomBytes(100_001)
  const direct = await registry.send('POST', `${uploads}?digest=${digestOf(content)}`, content)
  expect([direct.status, await codeOf(direct)]).toEqual([413, 'SIZE_INVALID'])
  const place = await begin(registry)
  expect((await registry.send('PATCH', place, content.subarray(0, 60_000))).status).toBe(202)
  expect((await registry.send('PATCH', place, content.subarray(0, 60_000))).status).toBe(413)
  expect((await registry.send('GET', place)).status).toBe(404)
  await pushBlob(registry, 'modules/hello', content.subarray(1))
  const huge = manifestOf('{}', 'x', { annotations: { padding: 'x'.repeat(4 * 1024 * 1024) } })
  expect((await putManifest(registry, 'modules/hello', 'latest', huge)).status).toBe(413)
})
