import { inspect } from 'node:util'
import { type RegistryClient, registryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import type { RegistryErrorKind } from '@platform/oci/error'
import { mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { type Respond, type ServerReply, startServer, type TestServer } from '../support/http-server.ts'
import { config, image, imageBytes, index, json, subject, to } from './responses.ts'
import { ada, all, blobOf, clientOf, failureOf, routed } from './support.ts'

const basic = `Basic ${Buffer.from(`${ada.username}:${ada.password}`).toString('base64')}`

function expectNoSecrets(failure: Error): void {
  const text = inspect(failure, { depth: Infinity, showHidden: true })
  for (const secret of [ada.password, basic.slice('Basic '.length)]) expect(text).not.toContain(secret)
}

type Operation = (client: RegistryClient) => Promise<unknown>
const operations = {
  repositories: (client) => all(client.repositories()),
  tags: (client) => all(client.tags('a')),
  resolve: (client) => client.resolve('a', 'latest'),
  resolveDigest: (client) => client.resolve('a', subject.digest),
  manifest: (client) => client.manifest('a', 'latest'),
  manifestDigest: (client) => client.manifest('a', subject.digest),
  blob: (client) => client.blob('a', blobOf('content')),
  hasBlob: (client) => client.hasBlob('a', digestOf('content')),
  putBlob: (client) => client.putBlob('a', Buffer.from('content')),
  putManifest: (client) => client.putManifest('a', 'latest', imageBytes, mediaTypes.manifest),
  referrers: (client) => client.referrers('a', subject.digest),
  putReferrer: (client) => client.putReferrer('a', { ...image, schemaVersion: 2, artifactType: 'test/kind', subject }),
  remove: (client) => client.remove('a', subject.digest),
} satisfies Record<string, Operation>

/** `otherUrl` is the URL of another server. */
type Row = [
  name: string,
  operation: keyof typeof operations,
  problem: RegistryErrorKind,
  respond: (otherUrl: string) => Respond,
]

const always =
  (reply: ServerReply): Row[3] =>
  () =>
  () =>
    reply

const leakCredentials =
  (respond: Respond): Respond =>
  async (request, outgoing) => {
    const { authorization } = request.headers
    if (authorization === undefined) return { status: 401, headers: { 'www-authenticate': 'Basic realm="here"' } }
    const reply = await respond(request, outgoing)
    if (reply === undefined) return undefined
    const body = JSON.stringify({ errors: [{ code: authorization, message: authorization, detail: authorization }] })
    return { body, ...reply, headers: { 'x-echo': authorization, ...reply.headers } }
  }

async function expectFailure([, operation, problem, respond]: Row): Promise<void> {
  await using otherServer = await startServer(() => ({ status: 200, body: 'content' }))
  await using registry = await startServer(leakCredentials(respond(otherServer.url)))
  // Only cases without a response may reach the time limit; their limit is short, so that the test ends soon.
  const timeoutMs = problem === 'unreachable' ? 500 : 60_000
  const { client } = clientOf(registry.host, { credentials: async () => ada, timeoutMs })
  const failure = await failureOf(operations[operation](client))
  expect(failure.problem).toBe(problem)
  expect(failure.message).toMatch(new RegExp(`${registry.host}.*\\. [A-Z].*\\.$`))
  expect(otherServer.requests).toEqual([])
  expectNoSecrets(failure)
}

const nestedArray = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

const brokenRow = (name: string, body: unknown, mediaType: string = mediaTypes.manifest): Row => [
  `has ${name} as a manifest`,
  'manifest',
  'invalid',
  always(json(body, { 'content-type': mediaType })),
]

const documents: Row[] = [
  brokenRow('nothing', ''),
  brokenRow('HTML', '<html>'),
  brokenRow('binary data', Buffer.from([0xff, 0xfe, 0x00])),
  brokenRow('null', null),
  brokenRow('a list', [image]),
  brokenRow('a million nested lists', nestedArray(1_000_000)),
  brokenRow('a deep unknown member', JSON.stringify(image).replace('{', `{"x":${nestedArray(500_000)},`)),
  brokenRow('an index with image members', { ...image, ...index }, mediaTypes.index),
  brokenRow('an image with index members', { ...image, ...index, mediaType: mediaTypes.manifest }),
  brokenRow('an image with the media type of an index', { ...image, mediaType: mediaTypes.index }),
  brokenRow('an index with the media type of an image', index),
  brokenRow('an image of schema version 1', { ...image, schemaVersion: 1 }),
  brokenRow('an image without layers', { ...image, layers: undefined }),
  brokenRow('an image with a null layer', { ...image, layers: [null] }),
  brokenRow('a negative size', { ...image, config: { ...config, size: -1 } }),
  brokenRow('a fractional size', { ...image, config: { ...config, size: 1.5 } }),
  brokenRow('an infinite size', JSON.stringify(image).replace('"size":2', '"size":1e400')),
  brokenRow('a digest with a path', { ...image, config: { ...config, digest: 'sha256:../../../etc/passwd' } }),
  brokenRow('an MD5 digest', { ...image, config: { ...config, digest: `md5:${'0'.repeat(32)}` } }),
  brokenRow('a nested annotation', { ...image, annotations: { a: { b: 'c' } } }),
  brokenRow('an index without a list', { ...index, manifests: {} }, mediaTypes.index),
  ['has 5 MiB as a manifest', 'manifest', 'too_large', always(json(Buffer.alloc(5 << 20, ' ')))],
  ['lists tags as a text', 'tags', 'invalid', always(json({ tags: 'latest' }))],
  ['lists tags with a path', 'tags', 'invalid', always(json({ tags: ['../../other/manifests/x'] }))],
  ['lists repositories with a path', 'repositories', 'invalid', always(json({ repositories: ['a/../b'] }))],
  ['lists 5 MiB of tags', 'tags', 'too_large', always(json({ tags: Array(1_000_000).fill('tag') }))],
  ['lists an image as referrers', 'referrers', 'invalid', always(json(image))],
]

const startedUpload = { status: 202, headers: { location: '/v2/a/blobs/uploads/1' } }

const uploading =
  (start: ServerReply, end: ServerReply): Respond =>
  ({ method }) =>
    ({ HEAD: { status: 404 }, POST: start })[method] ?? end

const page = (next: string): ServerReply => json({ tags: ['a'] }, { link: `<${next}>; rel="next"` })

const respondEndlessly: Respond = (_request, outgoing) => {
  const writeMore = () => {
    while (outgoing.write(Buffer.alloc(65_536)));
  }
  outgoing.on('drain', writeMore)
  writeMore()
  return undefined
}

const subjectDigest = { 'docker-content-digest': subject.digest }
const otherDigest = { 'docker-content-digest': digestOf('x') }

const wrongContent: Row[] = [
  ['has another image under a digest', 'manifestDigest', 'invalid', always(json({ ...image, annotations: {} }))],
  ['has an image as HTML', 'manifest', 'invalid', always(json(image, { 'content-type': 'text/html' }))],
  ['has an image without a type', 'manifest', 'invalid', always({ status: 200, body: imageBytes })],
  ['reports another digest', 'manifest', 'invalid', always(json(image, otherDigest))],
  ['resolves a digest to another', 'resolveDigest', 'invalid', always(json(image, otherDigest))],
  ['resolves to no digest', 'resolve', 'invalid', always(json(image, { 'docker-content-digest': 'latest' }))],
  ['resolves to HTML', 'resolve', 'invalid', always(json(image, { ...subjectDigest, 'content-type': 'text/html' }))],
  ['resolves to 5 MiB', 'resolve', 'too_large', always(json(Buffer.alloc(5 << 20), subjectDigest))],
  ['has other content as a blob', 'blob', 'invalid', always({ status: 200, body: 'Content' })],
  ['has a shorter blob', 'blob', 'invalid', always({ status: 200, body: 'conten' })],
  ['has a longer blob', 'blob', 'invalid', always({ status: 200, body: 'content!' })],
  ['has an endless blob', 'blob', 'invalid', () => respondEndlessly],
  ['sends a partial blob', 'blob', 'invalid', always({ status: 206, body: 'content' })],
  ['stores another blob', 'putBlob', 'invalid', () => uploading(startedUpload, { status: 201, headers: otherDigest })],
  ['stores another manifest', 'putManifest', 'invalid', always({ status: 201, headers: otherDigest })],
  ['returns 200 for an upload', 'putManifest', 'invalid', always({ status: 200 })],
  ['has an image under the referrers tag', 'putReferrer', 'invalid', () => afterPut(json(image))],
  ['loses the referrers index', 'putReferrer', 'refused', () => afterPut({ status: 404 })],
]

const afterPut =
  (reply: ServerReply): Respond =>
  ({ method }) =>
    method === 'PUT' ? { status: 201 } : reply

const redirects: Row[] = [
  ['continues a list at another host', 'tags', 'refused', (url) => () => page(`${url}/v2/a/tags/list?last=a`)],
  ['continues a list at a relative host', 'tags', 'refused', (url) => () => page(url.replace('http:', ''))],
  ['redirects a list', 'tags', 'refused', (url) => () => to(url)],
  ['redirects a manifest', 'manifest', 'refused', (url) => () => to(url)],
  ['redirects a manifest to itself', 'manifest', 'refused', always(to('/v2/a/manifests/other'))],
  ['redirects a HEAD request', 'resolve', 'refused', (url) => () => to(url, 302)],
  ['redirects a manifest upload', 'putManifest', 'refused', (url) => () => to(url, 308)],
  ['redirects a removal', 'remove', 'refused', (url) => () => to(url)],
  ['redirects the start of an upload', 'putBlob', 'refused', (url) => uploading(to(url), { status: 201 })],
  ['redirects an upload', 'putBlob', 'refused', (url) => uploading(startedUpload, to(url))],
  ['starts an upload at another host', 'putBlob', 'refused', (url) => uploading(to(`${url}/x`, 202), { status: 201 })],
  ['starts an upload without a location', 'putBlob', 'refused', () => uploading({ status: 202 }, { status: 201 })],
  ['mounts without a request', 'putBlob', 'invalid', () => uploading({ status: 201 }, { status: 201 })],
  ['redirects a blob in a circle', 'blob', 'refused', always(to('/v2/a/blobs/again'))],
  ['redirects a blob to an invalid URL', 'blob', 'refused', always(to('http://['))],
  ['redirects a blob to a file', 'blob', 'refused', always(to('file:///etc/passwd'))],
  ['redirects a blob to http', 'blob', 'refused', always(to('http://storage.example/blob'))],
  ['redirects a blob without a location', 'blob', 'refused', always({ status: 307 })],
]

let pages = 0
const nextPageLink = () => `?last=${(pages += 1)}`
const circle: Respond = ({ url }) => page(url.searchParams.get('last') === 'b' ? '?last=a' : '?last=b')
const catalog: Respond = () =>
  json({ repositories: Array(600_000).fill('a/b') }, { link: `<${nextPageLink()}>; rel="next"` })
const unsupportedError = '{"errors":[{"code":"UNSUPPORTED"}]}'
const switching = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'

const raw =
  (send: (outgoing: Parameters<Respond>[1]) => unknown): Row[3] =>
  () =>
  (_request, outgoing) =>
    void send(outgoing)
const headers = { 'content-length': 7 }

const failures: Row[] = [
  ['lists in a circle', 'tags', 'too_large', () => circle],
  ['lists without end', 'tags', 'too_large', () => () => page(nextPageLink())],
  ['lists too many repositories', 'repositories', 'too_large', () => catalog],
  ['requires a delay', 'tags', 'unreachable', always({ status: 429, headers: { 'retry-after': '7' } })],
  ['fails', 'manifest', 'unreachable', always({ status: 500, body: 'Internal error' })],
  ['denies access', 'manifest', 'unauthorized', always({ status: 403, body: '{"errors":[{"code":"DENIED"}]}' })],
  ['is no registry', 'tags', 'not_found', always({ status: 404, body: '<html>' })],
  ['returns an unknown status', 'blob', 'refused', always({ status: 418 })],
  ['does not support removal', 'remove', 'refused', always({ status: 405, body: unsupportedError })],
  ['never responds', 'resolve', 'unreachable', raw(() => {})],
  ['stalls during a manifest', 'manifest', 'unreachable', raw((outgoing) => outgoing.writeHead(200).write('{'))],
  [
    'disconnects during a blob',
    'blob',
    'unreachable',
    raw((outgoing) => outgoing.writeHead(200, headers).write('con', () => outgoing.destroy())),
  ],
  ['disconnects', 'hasBlob', 'unreachable', raw((outgoing) => outgoing.destroy())],
  ['does not speak HTTP', 'tags', 'unreachable', raw(({ socket }) => socket?.end('220 smtp.example ESMTP\r\n'))],
  ['switches protocols', 'tags', 'unreachable', raw(({ socket }) => socket?.write(switching))],
]

test.for([...documents, ...wrongContent, ...redirects, ...failures])(
  'reports a registry that %s, on %s, as %s, without secrets',
  expectFailure,
)

const credentials = async () => ada
const tags: ServerReply = { status: 200, body: '{"tags":["latest"]}' }
const challenge = (text: string): ServerReply => ({ status: 401, headers: { 'www-authenticate': text } })
const bearer = (realm: string): ServerReply =>
  challenge(`Bearer realm="${realm}",service="here",scope="repository:secret:push"`)
const authorizationsOf = ({ requests }: TestServer) => requests.map(({ headers }) => headers.authorization)

describe('a token realm', () => {
  test.for<[where: string, problem: RegistryErrorKind, realm: (otherUrl: string) => string]>([
    ['on another host', 'refused', (url) => url.replace('127.0.0.1', 'localhost')],
    ['on another host with https', 'refused', () => 'https://evil.example/token'],
    ['on a trusted host without https', 'refused', () => 'http://auth.example/token'],
    ['on a host with a trusted prefix', 'refused', () => 'https://auth.example.evil.example/token'],
    ['on another host with the registry as user', 'refused', () => 'https://127.0.0.1@evil.example/token'],
    ['with a user name', 'refused', (url) => url.replace('http://', 'http://ada@')],
    ['that is a file', 'refused', () => 'file://127.0.0.1/etc/passwd'],
    ['that is no URL', 'invalid', () => 'token'],
  ])('%s is rejected (%s) and gets no request', async ([, problem, realm]) => {
    await using otherServer = await startServer(() => ({ status: 200, body: '{"token":"t"}' }))
    await using registry = await startServer(() => bearer(realm(otherServer.url)))
    const { client, sent } = clientOf(registry.host, { credentials, trustedRealms: ['auth.example'] })
    expect(await failureOf(all(client.tags('a')))).toMatchObject({ problem })
    expect(sent).toHaveLength(1)
    expect(otherServer.requests).toEqual([])
  })

  test('on the host of the registry without https is rejected and gets no credentials', async () => {
    await using registry = await startServer(() => bearer('http://registry.example/token'))
    const servers = { 'https://registry.example': registry.url, 'http://registry.example': registry.url }
    const client = registryClient('registry.example', { transport: routed(servers), credentials })
    const failure = await failureOf(client.resolve('a', 'latest'))
    expect(failure).toMatchObject({ problem: 'refused', message: expect.stringContaining('HTTPS') })
    expect(authorizationsOf(registry)).toEqual([undefined])
  })

  test('on a trusted host gets the credentials, and only the scopes of the client', async () => {
    await using tokens = await startServer(() => ({ status: 200, body: '{"access_token":"t0k-en"}' }))
    const realm = `${tokens.url.replace('127.0.0.1', 'localhost')}/token?account=a`
    await using registry = await startServer(({ headers }) =>
      headers.authorization === 'Bearer t0k-en' ? tags : bearer(realm),
    )
    const { client } = clientOf(registry.host, { credentials, trustedRealms: ['localhost'] })
    expect(await all(client.tags('a'))).toEqual(['latest'])
    expect(authorizationsOf(registry)).toEqual([undefined, 'Bearer t0k-en'])
    expect(authorizationsOf(tokens)).toEqual([basic])
    expect(tokens.requests[0]?.url.search).toBe('?account=a&service=here&scope=repository%3Aa%3Apull')
  })
})

describe('a failed authentication', () => {
  test.for<[how: string, problem: RegistryErrorKind, requests: number, respond: (registryUrl: string) => Respond]>([
    ['without a challenge', 'unauthorized', 1, () => () => ({ status: 401 })],
    ['with unknown schemes', 'unauthorized', 1, () => () => challenge('Negotiate, Digest realm="here"')],
    ['without a realm', 'invalid', 1, () => () => challenge('Bearer service="here"')],
    ['with a rejected password', 'unauthorized', 2, () => () => challenge('Basic realm="here"')],
    ['with a rejected token', 'unauthorized', 3, tokenIs({ status: 200, body: '{"token":"t"}' })],
    ['with a refused token', 'unauthorized', 2, tokenIs({ status: 403 })],
    ['without a token', 'invalid', 2, tokenIs({ status: 200, body: '{}' })],
    ['with a number as a token', 'invalid', 2, tokenIs({ status: 200, body: '{"token":1}' })],
    ['with a header in the token', 'invalid', 2, tokenIs({ status: 200, body: '{"token":"t\\r\\nx-other: 1"}' })],
    ['with an endless token', 'too_large', 2, tokenIs({ status: 200, body: `{"token":"${'t'.repeat(1e6)}"}` })],
    ['with a redirect', 'refused', 2, tokenIs({ status: 307, headers: { location: 'https://evil.example' } })],
    ['with a retry delay', 'unreachable', 2, tokenIs({ status: 503, headers: { 'retry-after': '9' } })],
  ])('%s causes an error (%s) without secrets after %i requests', async ([, problem, requests, respond]) => {
    await using registry = await startServer((request, outgoing) =>
      respond(`http://${request.headers.host}`)(request, outgoing),
    )
    const { client, sent } = clientOf(registry.host, { credentials })
    const failure = await failureOf(all(client.tags('a')))
    expect(failure.problem).toBe(problem)
    expect(failure.retryAfterSeconds).toBe(problem === 'unreachable' ? 9 : undefined)
    expect(sent).toHaveLength(requests)
    expectNoSecrets(failure)
  })

  test.for(['Basic realm="here"', 'Bearer realm="http://127.0.0.1/"'])(
    'without credentials sends no authorization: %s',
    async (text) => {
      await using registry = await startServer(({ url }) => (url.pathname === '/' ? { status: 401 } : challenge(text)))
      const realm = text.replace('http://127.0.0.1', registry.url)
      await using challenging = await startServer(() => challenge(realm))
      const failure = await failureOf(clientOf(challenging.host).client.resolve('a', 'latest'))
      expect(failure).toMatchObject({ problem: 'unauthorized' })
      expect([...authorizationsOf(challenging), ...authorizationsOf(registry)].filter(Boolean)).toEqual([])
    },
  )
})

function tokenIs(reply: ServerReply): (registryUrl: string) => Respond {
  return (registryUrl) =>
    ({ url }) =>
      url.pathname === '/token' ? reply : bearer(`${registryUrl}/token`)
}

const storage = (hops: number): Respond => {
  let hopsLeft = hops
  return () =>
    (hopsLeft -= 1) < 0 ? { status: 200, body: 'content' } : { status: 302, headers: { location: '/next' } }
}
const redirectHops =
  (location: string): Respond =>
  ({ headers, url }) => {
    if (url.pathname === '/back') return { status: 200, body: 'content' }
    return headers.authorization === basic ? { status: 307, headers: { location } } : challenge('Basic realm="here"')
  }

describe('a redirect of a blob', () => {
  test('to another host is followed without credentials', async () => {
    await using otherServer = await startServer(storage(2))
    await using registry = await startServer(redirectHops(`${otherServer.url}/blob?signature=x`))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(authorizationsOf(registry)).toEqual([undefined, basic])
    expect(authorizationsOf(otherServer)).toEqual([undefined, undefined, undefined])
  })

  test('is followed at most three times', async () => {
    await using otherServer = await startServer(storage(3))
    await using registry = await startServer(redirectHops(otherServer.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(otherServer.requests).toHaveLength(3)
  })

  test('back to the registry is followed without credentials', async () => {
    await using registry: TestServer = await startServer((request, outgoing) =>
      redirectHops(otherServer.url)(request, outgoing),
    )
    await using otherServer: TestServer = await startServer(() => ({
      status: 307,
      headers: { location: `${registry.url}/back` },
    }))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(authorizationsOf(registry)).toEqual([undefined, basic, undefined])
  })

  test('from a remote registry to this machine is rejected', async () => {
    await using localServer = await startServer(storage(0))
    await using registry = await startServer(() => ({ status: 307, headers: { location: localServer.url } }))
    const transport = routed({ 'https://registry.example': registry.url, [localServer.url]: localServer.url })
    const client = registryClient('registry.example', { transport })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(localServer.requests).toEqual([])
  })

  test('means that the blob exists, and is not followed', async () => {
    await using otherServer = await startServer(storage(0))
    await using registry = await startServer(redirectHops(otherServer.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.hasBlob('a', blobOf('content').digest)).toBe(true)
    expect(otherServer.requests).toEqual([])
  })
})
