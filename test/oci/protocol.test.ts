import { createServer } from 'node:https'
import { challengesOf } from '@platform/oci/authentication'
import { registryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { RegistryError } from '@platform/oci/error'
import { plainTransport } from '@platform/oci/plain-transport'
import { mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { listen, type Respond, startServer } from '../support/http-server.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { createCertificates } from '../support/slapd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { config, image, imageBytes, index, json, subject } from './responses.ts'
import { ada, all, blobOf, clientOf, failureOf, routed } from './support.ts'

const credentials = async () => ada

test.for([
  ['Basic realm="a"', [{ scheme: 'basic', parameters: { realm: 'a' } }]],
  ['bearer realm=a,Service = "b c"', [{ scheme: 'bearer', parameters: { realm: 'a', service: 'b c' } }]],
  ['Basic realm="a, Bearer \\"b\\""', [{ scheme: 'basic', parameters: { realm: 'a, Bearer "b"' } }]],
  [
    'Negotiate, Bearer realm="a", scope="x:y:pull,push", Basic realm="b"',
    [
      { scheme: 'negotiate', parameters: {} },
      { scheme: 'bearer', parameters: { realm: 'a', scope: 'x:y:pull,push' } },
      { scheme: 'basic', parameters: { realm: 'b' } },
    ],
  ],
  ['realm="a"', []],
  ['', []],
] as const)('parses the challenge %j', ([header, challenges]) => {
  expect(challengesOf(header)).toEqual(challenges)
})

test('parses long challenges in linear time', () => {
  for (const piece of ['"', 'a="', 'a=', 'a ', '\\', 'a="\\', ', ']) challengesOf(piece.repeat(1_000_000))
})

test.for(['', 'user:pw@host', 'host/path', 'host?x', 'host#x', 'host:99999', 'ho st', 'a'.repeat(300), 'https://host'])(
  'rejects %j as a registry name',
  (registry) => {
    expect(() => registryClient(registry, { transport: routed({}) })).toThrow(RegistryError)
  },
)

test('sends no request for an invalid name', async () => {
  const { client, sent } = clientOf('127.0.0.1:9')
  const digest = digestOf('x')
  const operations = [
    ...['../a', 'a/../b', 'A', 'a?b', '', 'a/', 'x'.repeat(256)].map((name) => client.resolve(name, 'latest')),
    ...['../x', 'a/b', '', '-a', 'sha256:0', `${digest}?x`, 'a'.repeat(129)].map((name) => client.manifest('a', name)),
    ...['latest', 'sha256:../..', digest.toUpperCase()].map((name) => client.hasBlob('a', name)),
    client.putBlob('a', Buffer.from('x'), { mountFrom: '../b' }),
    client.putManifest('a', digest, imageBytes, mediaTypes.manifest),
  ]
  for (const operation of operations) expect(await failureOf(operation)).toMatchObject({ problem: 'invalid' })
  expect(sent).toEqual([])
})

test('sends no request for a blob or manifest that exceeds its limit', async () => {
  const { client, sent } = clientOf('127.0.0.1:9')
  const largeDescriptor = { digest: digestOf('x'), size: 8 * 1024 * 1024 + 1 }
  expect(await failureOf(client.blob('a', largeDescriptor))).toMatchObject({ problem: 'too_large' })
  expect(await failureOf(client.blob('a', { ...largeDescriptor, size: 11 }, 10))).toMatchObject({
    problem: 'too_large',
  })
  const manifest = client.putManifest('a', 'latest', Buffer.alloc(4 * 1024 * 1024 + 1), mediaTypes.manifest)
  expect(await failureOf(manifest)).toMatchObject({ problem: 'too_large' })
  expect(sent).toEqual([])
})

test('rejects a blob whose size differs from its descriptor', async () => {
  await using registry = await startServer(() => ({ status: 200, body: 'content' }))
  const { client } = clientOf(registry.host)
  const { digest } = blobOf('content')
  for (const size of [6, 8])
    expect(await failureOf(client.blob('a', { digest, size }))).toMatchObject({ problem: 'invalid' })
  expect(await client.blob('a', { digest, size: 7 })).toEqual(Buffer.from('content'))
})

test('closes the connection after a timeout', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  await using registry = await startServer((_request, outgoing) => void outgoing.on('close', resolve))
  const { client } = clientOf(registry.host, { timeoutMs: 100 })
  expect(await failureOf(client.resolve('a', 'latest'))).toMatchObject({ problem: 'unreachable' })
  await closed
})

test('connects to a remote registry with https', async () => {
  await using registry = await startServer(() => json({ tags: null }))
  const client = registryClient('registry.example:5000', {
    transport: routed({ 'https://registry.example:5000': registry.url }),
  })
  expect(await all(client.tags('a'))).toEqual([])
  const unreachableClient = registryClient('registry.example', { transport: routed({}) })
  expect(await failureOf(all(unreachableClient.tags('a')))).toMatchObject({ problem: 'unreachable' })
})

test('maps docker.io to its registry and token server', async () => {
  await using tokens = await startServer(() => json({ token: 't' }))
  const realm = 'Bearer realm="https://auth.docker.io/token",service="registry.docker.io"'
  await using registry = await startServer(({ headers }) =>
    headers.authorization === 'Bearer t'
      ? json({ tags: ['1'] })
      : { status: 401, headers: { 'www-authenticate': realm } },
  )
  const servers = { 'https://registry-1.docker.io': registry.url, 'https://auth.docker.io': tokens.url }
  const client = registryClient('docker.io', { transport: routed(servers) })
  expect(await all(client.tags('library/hello'))).toEqual(['1'])
})

test('replaces an expired token and repeats the request', async () => {
  let issuedTokens = 0
  let uses = 0
  await using registry = await startServer(({ url, headers }) => {
    if (url.pathname === '/token') return json({ token: `t${(issuedTokens += 1)}` })
    const isAccepted = headers.authorization === `Bearer t${issuedTokens}` && (uses += 1) % 3 !== 0
    const challenge = { 'www-authenticate': `Bearer realm="http://${headers.host}/token"` }
    return isAccepted
      ? json({ tags: [headers.authorization?.slice('Bearer '.length)] })
      : { status: 401, headers: challenge }
  })
  const { client } = clientOf(registry.host, { credentials })
  const results: string[][] = []
  for (let count = 0; count < 4; count += 1) results.push(await all(client.tags('a')))
  expect(results).toEqual([['t1'], ['t1'], ['t2'], ['t2']])
})

test('follows relative and absolute links to further pages', async () => {
  const links: Record<string, string> = {
    '?n=100': '<https://evil.example/?a>; rel="first", <?last=1>; title="x"; rel="next"',
    '?last=1': '</v2/a/tags/list?last=2>;rel=next',
    '?last=2': '<HTTP://HOST/v2/a/tags/list?last=3>; rel="next"',
    '?last=3': '<?last=2>; rel="prev"',
  }
  await using registry = await startServer(({ url, headers }) =>
    json({ tags: [`page${url.search.at(-1)}`] }, { link: links[url.search]!.replace('HOST', headers.host!) }),
  )
  expect(await all(clientOf(registry.host).client.tags('a'))).toEqual(['page0', 'page1', 'page2', 'page3'])
})

test.for([
  ['7', 7],
  ['0', 0],
  ['99999999999', 86_400],
  ['Wed, 21 Oct 2015 07:28:30 GMT', 30],
  ['Wed, 21 Oct 2015 07:27:00 GMT', 0],
  ['-5', undefined],
  ['soon', undefined],
  ['', undefined],
] as const)('parses the retry delay %j', async ([text, retryAfterSeconds]) => {
  const headers = { 'retry-after': text, date: 'Wed, 21 Oct 2015 07:28:00 GMT' }
  await using registry = await startServer(() => ({ status: 503, headers }))
  const failure = await failureOf(clientOf(registry.host).client.resolve('a', 'latest'))
  expect(failure).toMatchObject({ problem: 'unreachable', retryAfterSeconds })
})

test('resolves with a GET if HEAD returns no digest', async () => {
  await using registry = await startServer(() => json(image))
  const { client, sent } = clientOf(registry.host)
  expect(await client.resolve('a', 'latest')).toEqual(subject)
  expect(sent.map((line) => line.split(' ')[0])).toEqual(['HEAD', 'GET'])
})

test('uses the media type of the response for a manifest without one, and keeps unknown members', async () => {
  const { mediaType: _, ...untyped } = { ...image, note: { deep: [1, 2] } }
  await using registry = await startServer(() =>
    json(untyped, { 'content-type': `${mediaTypes.dockerManifest}; charset=utf-8` }),
  )
  const manifest = await clientOf(registry.host).client.manifest('a', 'latest')
  expect(manifest?.content).toEqual({ ...untyped, mediaType: mediaTypes.dockerManifest })
  expect(manifest?.descriptor.mediaType).toBe(mediaTypes.dockerManifest)
})

describe('referrers', () => {
  const firstReferrer = { ...config, artifactType: 'test/one' }
  const secondReferrer = { ...config, digest: digestOf('two'), artifactType: 'test/two' }
  const referrer = { ...image, schemaVersion: 2 as const, artifactType: 'test/kind', subject }

  test('are listed by the referrers API over several pages, optionally filtered', async () => {
    await using registry = await startServer(({ url }) =>
      url.searchParams.has('last')
        ? json({ ...index, manifests: [secondReferrer] })
        : json({ ...index, manifests: [firstReferrer] }, { link: '<?last=1>; rel="next"' }),
    )
    const { client, sent } = clientOf(registry.host)
    expect(await client.referrers('a', subject.digest)).toEqual([firstReferrer, secondReferrer])
    expect(await client.referrers('a', subject.digest, 'test/two')).toEqual([secondReferrer])
    expect(registry.requests[2]?.url.search).toBe('?artifactType=test%2Ftwo')
    expect(new Set(sent)).toEqual(new Set([`GET /v2/a/referrers/${subject.digest}`]))
  })

  test('are stored with one request if the registry indexes them', async () => {
    await using registry = await startServer(() => ({ status: 201, headers: { 'oci-subject': subject.digest } }))
    const { client, sent } = clientOf(registry.host)
    const descriptor = await client.putReferrer('a', referrer)
    expect(sent).toEqual([`PUT /v2/a/manifests/${descriptor.digest}`])
    expect(descriptor).toEqual({
      ...blobOf(JSON.stringify(referrer)),
      mediaType: mediaTypes.manifest,
      artifactType: 'test/kind',
    })
  })

  test.for([400, 404, 405, 406, 501, 303])('are read from the referrers tag if the API returns %i', async (status) => {
    // GitHub's registry redirects to a web page.
    const headers = { location: 'https://github.example/packages' }
    await using registry = await startServer(({ url }) =>
      url.pathname.includes('referrers')
        ? { status, headers }
        : json({ ...index, manifests: [firstReferrer] }, { 'content-type': mediaTypes.index }),
    )
    expect(await clientOf(registry.host).client.referrers('a', subject.digest)).toEqual([firstReferrer])
  })

  test('are written again after a concurrent write', async () => {
    let storedIndex: object = { ...index, manifests: [] }
    const writes: Buffer[] = []
    const respond: Respond = ({ method, body, url }) => {
      if (method === 'GET') return json(storedIndex, { 'content-type': mediaTypes.index })
      if (url.pathname.endsWith(subject.digest.replace(':', '-'))) {
        // The first write is overwritten by a concurrent one.
        storedIndex = writes.push(body) === 1 ? { ...index, manifests: [firstReferrer] } : JSON.parse(body.toString())
      }
      return { status: 201 }
    }
    await using registry = await startServer(respond)
    const descriptor = await clientOf(registry.host).client.putReferrer('a', referrer)
    expect(storedIndex).toMatchObject({ manifests: [firstReferrer, descriptor] })
    expect(writes).toHaveLength(2)
  })
})

const limits = { timeoutMs: 5000, maxBytes: 10 }

test('returns a response unchanged, without following redirects, and limits its body', async () => {
  await using server = await startServer(({ body }) => ({
    status: 307,
    headers: { location: '/x', 'X-Upper': 'a' },
    body,
  }))
  const send = (body: Uint8Array) => plainTransport(`${server.url}/path?x=1`, { method: 'PUT', body, ...limits })
  expect(await send(Buffer.from('0123456789'))).toMatchObject({
    status: 307,
    headers: { location: '/x', 'x-upper': 'a' },
    body: Buffer.from('0123456789'),
    isCutShort: false,
  })
  expect(await send(Buffer.from('0123456789+'))).toMatchObject({ body: Buffer.from('0123456789'), isCutShort: true })
  expect(server.requests[0]).toMatchObject({ method: 'PUT', headers: { 'content-length': '10' } })
})

const skipReason = missingPrograms('openssl')
test.skipIf(skipReason !== '')(`rejects a server with an untrusted certificate${skipReason}`, async () => {
  await using folder = await temporaryFolder()
  let requests = 0
  await using server = await listen(
    createServer(await createCertificates(folder.path), (_incoming, outgoing) => {
      requests += 1
      outgoing.end()
    }),
  )
  const work = plainTransport(server.url.replace('http://127.0.0.1', 'https://localhost'), { method: 'GET', ...limits })
  await expect(work).rejects.toMatchObject({ code: 'SELF_SIGNED_CERT_IN_CHAIN' })
  expect(requests).toBe(0)
})
