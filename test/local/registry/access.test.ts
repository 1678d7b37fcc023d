import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askRaw, codeOf, digestOf, freshRegistry, pushBlob, pushImage } from './support.ts'

const digest = digestOf('content')
const uploadId = '0'.repeat(8) + '-0000'.repeat(3) + `-${'0'.repeat(12)}`
const writes = [
  ['POST', '/v2/modules/hello/blobs/uploads/'],
  ['GET', `/v2/modules/hello/blobs/uploads/${uploadId}`],
  ['PATCH', `/v2/modules/hello/blobs/uploads/${uploadId}`],
  ['PUT', `/v2/modules/hello/blobs/uploads/${uploadId}?digest=${digest}`],
  ['PUT', '/v2/modules/hello/manifests/latest'],
  ['DELETE', '/v2/modules/hello/manifests/latest'],
  ['DELETE', `/v2/modules/hello/blobs/${digest}`],
] as const

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const strangers = [
  '',
  'Bearer x',
  basic('platform:'),
  basic('platform:wrong'),
  basic('admin:correct horse battery'),
  'Basic %%%',
]

test.for(writes)('%s %s needs the writer’s password', async ([method, path]) => {
  await using registry = await freshRegistry()
  await pushImage(registry, 'modules/hello', 'latest')
  await pushBlob(registry, 'modules/hello', 'content')
  for (const authorization of strangers) {
    const answer = await fetch(registry.url(path), { method, headers: authorization === '' ? {} : { authorization } })
    expect([authorization, answer.status]).toEqual([authorization, 401])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm=/)
    expect(await codeOf(answer)).toBe('UNAUTHORIZED')
  }
  expect((await registry.read('/v2/modules/hello/manifests/latest')).status).toBe(200)
  expect((await registry.read(`/v2/modules/hello/blobs/${digest}`)).status).toBe(200)
})

test('everybody on the machine may read, and a client that asks learns that writing needs a password', async () => {
  await using registry = await freshRegistry()
  const { digest: image } = await pushImage(registry, 'modules/hello', 'latest')
  const paths = ['/v2/_catalog', '/v2/modules/hello/tags/list', `/v2/modules/hello/referrers/${image}`]
  for (const path of [...paths, '/v2/modules/hello/manifests/latest']) {
    expect((await registry.read(path)).status).toBe(200)
    // Clients without a password send an empty one where they were asked for one.
    expect((await registry.read(path, { authorization: basic(':') })).status).toBe(200)
  }
  expect((await registry.read('/v2/')).status).toBe(401)
  expect((await registry.send('GET', '/v2/')).status).toBe(200)
})

test.for(['attacker.example', 'localhost.attacker.example', '127.0.0.1.attacker.example:80', '10.0.0.1'])(
  'a request that names the host %j comes from a page that made a name lead here, and is refused',
  async (host) => {
    await using registry = await freshRegistry()
    await pushImage(registry, 'modules/hello', 'latest')
    const answer = await askRaw(registry.host, 'GET', '/v2/modules/hello/manifests/latest', { host })
    expect(answer.status).toBe(403)
  },
)

const traversals = [
  '..',
  '.',
  '../..',
  '%2e%2e',
  '..%2f..',
  'a/../b',
  'a//b',
  '/a',
  'a/',
  'a/.',
  '.a',
  '_blobs',
  'a/_tags',
]
const strange = [
  'A',
  'a b',
  'a%20b',
  'a\\b',
  'a%00b',
  'a:b',
  '-a',
  'a-',
  'a__b__',
  'a...b',
  'ä',
  'a'.repeat(256),
  `${'a/'.repeat(127)}aa`,
]

test.for([...traversals, ...strange])('no request can name the repository %j', async (name) => {
  await using registry = await freshRegistry()
  const before = await readdir(registry.folder, { recursive: true })
  const path = `/v2/${encodeURI(name).replaceAll('%25', '%')}`
  const requests = [
    ['GET', `${path}/tags/list`],
    ['GET', `${path}/manifests/latest`],
    ['PUT', `${path}/manifests/latest`],
    ['GET', `${path}/blobs/${digest}`],
    ['POST', `${path}/blobs/uploads/`],
    ['GET', `${path}/referrers/${digest}`],
  ] as const
  for (const [method, asked] of requests) {
    const { status, body } = await askRaw(registry.host, method, asked)
    expect([asked, status, JSON.parse(body).errors[0].code]).toEqual([asked, 404, 'NAME_UNKNOWN'])
  }
  expect(await readdir(registry.folder, { recursive: true })).toEqual(before)
})

const badReferences = [
  '..',
  '.hidden',
  '-x',
  'a/b',
  '%2e%2e',
  'x'.repeat(129),
  'sha256:abc',
  `sha512:${'0'.repeat(128)}`,
  digest.toUpperCase(),
  '',
]

test.for(badReferences)('no request can name the manifest %j', async (reference) => {
  await using registry = await freshRegistry()
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const { status } = await askRaw(registry.host, method, `/v2/modules/hello/manifests/${reference}`)
    expect([method, status]).toEqual([method, 404])
  }
})

test.for(['sha256:abc', 'md5:0', `sha256:${'g'.repeat(64)}`, '../../../etc/passwd', ''])(
  'no blob can be ended or mounted under the digest %j',
  async (named) => {
    await using registry = await freshRegistry()
    const { headers } = await registry.send('POST', '/v2/modules/hello/blobs/uploads/')
    const place = headers.get('location') ?? ''
    const ended = await registry.send('PUT', `${place}?digest=${encodeURIComponent(named)}`, 'x')
    expect([ended.status, await codeOf(ended)]).toEqual([400, 'DIGEST_INVALID'])
    // Nothing was taken for its content.
    expect((await registry.send('PUT', `${place}?digest=${digest}`, 'content')).status).toBe(201)
    const mount = `/v2/modules/hello/blobs/uploads/?mount=${encodeURIComponent(named)}&from=..%2f..`
    expect((await registry.send('POST', mount)).status).toBe(202)
  },
)

test('no blob is mounted from beside the repositories', async () => {
  await using registry = await freshRegistry()
  await pushBlob(registry, 'modules/hello', 'content')
  const outside = join(registry.folder, 'outside', '_blobs')
  await mkdir(outside, { recursive: true })
  await writeFile(join(outside, digest.slice('sha256:'.length)), '')
  const from = encodeURIComponent('../outside')
  const answer = await registry.send('POST', `/v2/modules/other/blobs/uploads/?mount=${digest}&from=${from}`)
  expect(answer.status).toBe(202)
})

test.for([
  ['POST', '/v2/_catalog'],
  ['PUT', '/v2/modules/hello/tags/list'],
  ['DELETE', '/v2/modules/hello/blobs/uploads/'],
  ['POST', '/v2/modules/hello/manifests/latest'],
  ['PATCH', `/v2/modules/hello/referrers/${digest}`],
  ['GET', '/v2/modules/hello/blobs/uploads/'],
] as const)('%s %s is no operation', async ([method, path]) => {
  await using registry = await freshRegistry()
  const answer = await registry.send(method, path)
  expect([answer.status, await codeOf(answer)]).toEqual([405, 'UNSUPPORTED'])
  expect(registry.failures).toEqual([])
})
