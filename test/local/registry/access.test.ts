import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { digestOf, errorCodeOf, freshRegistry, pushBlob, pushImage, sendRaw } from './support.ts'

const digest = digestOf('content')
const uploadId = '0'.repeat(8) + '-0000'.repeat(3) + `-${'0'.repeat(12)}`

/** Shared: rejected requests change nothing. */
let registry: Awaited<ReturnType<typeof freshRegistry>>
beforeAll(async () => {
  registry = await freshRegistry()
  await pushImage(registry, 'modules/hello', 'latest')
  await pushBlob(registry, 'modules/hello', 'content')
})
afterAll(() => registry[Symbol.asyncDispose]())

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const invalidCredentials = [
  '',
  'Bearer x',
  basic('platform:'),
  basic('platform:wrong'),
  basic('admin:correct horse battery'),
  'Basic %%%',
]

test.for([
  ['POST', '/v2/modules/hello/blobs/uploads/'],
  ['GET', `/v2/modules/hello/blobs/uploads/${uploadId}`],
  ['PATCH', `/v2/modules/hello/blobs/uploads/${uploadId}`],
  ['PUT', `/v2/modules/hello/blobs/uploads/${uploadId}?digest=${digest}`],
  ['PUT', '/v2/modules/hello/manifests/latest'],
  ['DELETE', '/v2/modules/hello/manifests/latest'],
  ['DELETE', `/v2/modules/hello/blobs/${digest}`],
] as const)('%s %s requires the password', async ([method, path]) => {
  for (const authorization of invalidCredentials) {
    const headers = authorization === '' ? undefined : { authorization }
    const response = await fetch(registry.url(path), { method, ...(headers && { headers }) })
    expect([authorization, response.status]).toEqual([authorization, 401])
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/)
    expect(await errorCodeOf(response)).toBe('UNAUTHORIZED')
  }
  expect((await registry.read('/v2/modules/hello/manifests/latest')).status).toBe(200)
  expect((await registry.read(`/v2/modules/hello/blobs/${digest}`)).status).toBe(200)
})

test('reading requires no password, and the base path responds with an authentication challenge', async () => {
  const paths = ['_catalog', 'modules/hello/tags/list', `modules/hello/referrers/${digest}`]
  for (const path of [...paths, 'modules/hello/manifests/latest'].map((each) => `/v2/${each}`)) {
    expect((await registry.read(path)).status).toBe(200)
    // Clients without a password send an empty one after a challenge.
    expect((await registry.read(path, { authorization: basic(':') })).status).toBe(200)
  }
  expect((await registry.read('/v2/')).status).toBe(401)
  expect((await registry.send('GET', '/v2/')).status).toBe(200)
})

test.for(['attacker.example', 'localhost.attacker.example', '127.0.0.1.attacker.example:80', '10.0.0.1'])(
  'rejects the host name %j, as in DNS rebinding',
  async (host) => {
    const response = await sendRaw(registry.host, 'GET', '/v2/modules/hello/manifests/latest', { host })
    expect(response.status).toBe(403)
  },
)

const traversals = '.. . ../.. %2e%2e ..%2f.. a/../b a//b /a a/ a/. .a _blobs a/_tags'.split(' ')
const invalidNames = 'A a%20b a\\b a%00b a:b -a a- a__b__ a...b ä'.split(' ')

test.for([...traversals, ...invalidNames, 'a b', 'a'.repeat(256), `${'a/'.repeat(127)}aa`])(
  'rejects the repository name %j',
  async (name) => {
    const filesBefore = await readdir(registry.folder, { recursive: true })
    const path = `/v2/${encodeURI(name).replaceAll('%25', '%')}`
    for (const [method, target] of [
      ['GET', `${path}/tags/list`],
      ['GET', `${path}/manifests/latest`],
      ['PUT', `${path}/manifests/latest`],
      ['GET', `${path}/blobs/${digest}`],
      ['POST', `${path}/blobs/uploads/`],
      ['GET', `${path}/referrers/${digest}`],
    ] as const) {
      const { status, body } = await sendRaw(registry.host, method, target)
      expect([target, status, JSON.parse(body).errors[0].code]).toEqual([target, 404, 'NAME_UNKNOWN'])
    }
    expect(await readdir(registry.folder, { recursive: true })).toEqual(filesBefore)
  },
)

const invalidReferences = ['..', '.hidden', '-x', 'a/b', '%2e%2e', 'x'.repeat(129), 'sha256:abc', '']

test.for([...invalidReferences, `sha512:${'0'.repeat(128)}`, digest.toUpperCase()])(
  'rejects the manifest reference %j',
  async (reference) => {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status } = await sendRaw(registry.host, method, `/v2/modules/hello/manifests/${reference}`)
      expect([method, status]).toEqual([method, 404])
    }
  },
)

test.for(['sha256:abc', 'md5:0', `sha256:${'g'.repeat(64)}`, '../../../etc/passwd', ''])(
  'rejects the blob digest %j',
  async (invalid) => {
    const { headers } = await registry.send('POST', '/v2/modules/hello/blobs/uploads/')
    const upload = headers.get('location') ?? ''
    const rejectedUpload = await registry.send('PUT', `${upload}?digest=${encodeURIComponent(invalid)}`, 'x')
    expect([rejectedUpload.status, await errorCodeOf(rejectedUpload)]).toEqual([400, 'DIGEST_INVALID'])
    expect((await registry.send('PUT', `${upload}?digest=${digest}`, 'content')).status).toBe(201)
    const mount = `/v2/modules/hello/blobs/uploads/?mount=${encodeURIComponent(invalid)}&from=..%2f..`
    expect((await registry.send('POST', mount)).status).toBe(202)
  },
)

test('mounts no blob from outside the repositories', async () => {
  const outsideFolder = join(registry.folder, 'outside', '_blobs')
  await mkdir(outsideFolder, { recursive: true })
  await writeFile(join(outsideFolder, digest.slice('sha256:'.length)), '')
  const repository = encodeURIComponent('../outside')
  const response = await registry.send('POST', `/v2/modules/other/blobs/uploads/?mount=${digest}&from=${repository}`)
  expect(response.status).toBe(202)
})

test.for([
  ['POST', '/v2/_catalog'],
  ['PUT', '/v2/modules/hello/tags/list'],
  ['DELETE', '/v2/modules/hello/blobs/uploads/'],
  ['POST', '/v2/modules/hello/manifests/latest'],
  ['PATCH', `/v2/modules/hello/referrers/${digest}`],
  ['GET', '/v2/modules/hello/blobs/uploads/'],
] as const)('rejects the unsupported operation %s %s', async ([method, path]) => {
  const response = await registry.send(method, path)
  expect([response.status, await errorCodeOf(response)]).toEqual([405, 'UNSUPPORTED'])
  expect(registry.failures).toEqual([])
})
