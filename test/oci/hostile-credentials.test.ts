import { inspect } from 'node:util'
import { registryClient } from '@platform/oci/client'
import type { RegistryErrorKind } from '@platform/oci/error'
import { describe, expect, test } from 'vitest'
import { type ServerReply, type Respond, startServer, type TestServer } from '../support/http-server.ts'
import { ada, all, blobOf, clientOf, failureOf, routed } from './support.ts'

const basic = `Basic ${Buffer.from(`${ada.username}:${ada.password}`).toString('base64')}`
const credentials = async () => ada
const tags: ServerReply = { status: 200, body: '{"tags":["latest"]}' }
const challenge = (text: string): ServerReply => ({ status: 401, headers: { 'www-authenticate': text } })
const bearer = (realm: string): ServerReply =>
  challenge(`Bearer realm="${realm}",service="here",scope="repository:secret:push"`)
const received = ({ requests: seen }: TestServer) => seen.map(({ headers }) => headers.authorization)

describe('a registry that sends whoever knows its password', () => {
  test.for<[where: string, problem: RegistryErrorKind, realm: (elsewhere: string) => string]>([
    ['to another host', 'refused', (url) => url.replace('127.0.0.1', 'localhost')],
    ['to another host by https', 'refused', () => 'https://evil.example/token'],
    ['to a listed host without https', 'refused', () => 'http://auth.example/token'],
    ['to a host that only begins like a listed one', 'refused', () => 'https://auth.example.evil.example/token'],
    ['to another host that names the own one as a user', 'refused', () => 'https://127.0.0.1@evil.example/token'],
    ['to itself as somebody', 'refused', (url) => url.replace('http://', 'http://ada@')],
    ['to a file', 'refused', () => 'file://127.0.0.1/etc/passwd'],
    ['nowhere', 'invalid', () => 'token'],
  ])('%s is refused (%s), and nobody is told', async ([, problem, realm]) => {
    await using elsewhere = await startServer(() => ({ status: 200, body: '{"token":"t"}' }))
    await using registry = await startServer(() => bearer(realm(elsewhere.url)))
    const { client, sent } = clientOf(registry.host, { credentials, trustedRealms: ['auth.example'] })
    expect(await failureOf(all(client.tags('a')))).toMatchObject({ problem })
    expect(sent).toHaveLength(1)
    expect(elsewhere.requests).toEqual([])
  })

  test('to its own host without https is refused, and nobody is told', async () => {
    await using registry = await startServer(() => bearer('http://registry.example/token'))
    const servers = { 'https://registry.example': registry.url, 'http://registry.example': registry.url }
    const client = registryClient('registry.example', { transport: routed(servers), credentials })
    const failure = await failureOf(client.resolve('a', 'latest'))
    expect(failure).toMatchObject({ problem: 'refused', message: expect.stringContaining('by https') })
    expect(received(registry)).toEqual([undefined])
  })

  test('to a listed host gets a token from there, for what is done and nothing that it names itself', async () => {
    await using tokens = await startServer(() => ({ status: 200, body: '{"access_token":"t0k-en"}' }))
    const realm = `${tokens.url.replace('127.0.0.1', 'localhost')}/token?account=a`
    await using registry = await startServer(({ headers }) =>
      headers.authorization === 'Bearer t0k-en' ? tags : bearer(realm),
    )
    const { client } = clientOf(registry.host, { credentials, trustedRealms: ['localhost'] })
    expect(await all(client.tags('a'))).toEqual(['latest'])
    expect(received(registry)).toEqual([undefined, 'Bearer t0k-en'])
    expect(received(tokens)).toEqual([basic])
    expect(tokens.requests[0]?.url.search).toBe('?account=a&service=here&scope=repository%3Aa%3Apull')
  })
})

describe('a registry that is never content', () => {
  test.for<[how: string, problem: RegistryErrorKind, requests: number, respond: (own: string) => Respond]>([
    ['tells not what it wants', 'unauthorized', 1, () => () => ({ status: 401 })],
    ['wants what is not spoken', 'unauthorized', 1, () => () => challenge('Negotiate, Digest realm="here"')],
    ['wants a token of nobody', 'invalid', 1, () => () => challenge('Bearer service="here"')],
    ['refuses the password', 'unauthorized', 2, () => () => challenge('Basic realm="here"')],
    ['refuses its token', 'unauthorized', 3, tokenIs({ status: 200, body: '{"token":"t"}' })],
    ['has no token for us', 'unauthorized', 2, tokenIs({ status: 403 })],
    ['hands out none', 'invalid', 2, tokenIs({ status: 200, body: '{}' })],
    ['hands out a number', 'invalid', 2, tokenIs({ status: 200, body: '{"token":1}' })],
    ['hands out more than a token', 'invalid', 2, tokenIs({ status: 200, body: '{"token":"t\\r\\nx-other: 1"}' })],
    ['hands out an endless token', 'too_large', 2, tokenIs({ status: 200, body: `{"token":"${'t'.repeat(1e6)}"}` })],
    ['sends us on for a token', 'refused', 2, tokenIs({ status: 307, headers: { location: 'https://evil.example' } })],
    ['has tokens later', 'unreachable', 2, tokenIs({ status: 503, headers: { 'retry-after': '9' } })],
  ])('and %s ends in a failure (%s) after requests: %i', async ([, problem, requests, respond]) => {
    await using registry = await startServer((seen, outgoing) => respond(`http://${seen.headers.host}`)(seen, outgoing))
    const { client, sent } = clientOf(registry.host, { credentials })
    const failure = await failureOf(all(client.tags('a')))
    expect(failure.problem).toBe(problem)
    expect(failure.retryAfterSeconds).toBe(problem === 'unreachable' ? 9 : undefined)
    expect(sent).toHaveLength(requests)
    const everything = inspect(failure, { depth: Infinity, showHidden: true })
    for (const secret of [ada.password, basic.slice('Basic '.length)]) expect(everything).not.toContain(secret)
  })

  test.for(['Basic realm="here"', 'Bearer realm="http://127.0.0.1/"'])(
    'is told nothing by a stranger: %s',
    async (text) => {
      await using registry = await startServer(({ url }) => (url.pathname === '/' ? { status: 401 } : challenge(text)))
      const realm = text.replace('http://127.0.0.1', registry.url)
      await using asking = await startServer(() => challenge(realm))
      const { client } = clientOf(asking.host)
      expect(await failureOf(client.resolve('a', 'latest'))).toMatchObject({ problem: 'unauthorized' })
      expect([...received(asking), ...received(registry)].filter(Boolean)).toEqual([])
    },
  )
})

/** A registry that hands out its own tokens, at `/token`, and takes none of them. */
function tokenIs(reply: ServerReply): (own: string) => Respond {
  return (own) =>
    ({ url }) =>
      url.pathname === '/token' ? reply : bearer(`${own}/token`)
}

/** Redirects so many times before it has the blob. */
const storage = (hops: number): Respond => {
  let left = hops
  return () => ((left -= 1) < 0 ? { status: 200, body: 'content' } : { status: 302, headers: { location: '/next' } })
}
const guarded =
  (location: string): Respond =>
  ({ headers, url }) => {
    if (url.pathname === '/back') return { status: 200, body: 'content' }
    return headers.authorization === basic ? { status: 307, headers: { location } } : challenge('Basic realm="here"')
  }

describe('a blob that lies elsewhere', () => {
  test('is read there, where nobody is told who asks', async () => {
    await using elsewhere = await startServer(storage(2))
    await using registry = await startServer(guarded(`${elsewhere.url}/blob?signature=x`))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(received(registry)).toEqual([undefined, basic])
    expect(received(elsewhere)).toEqual([undefined, undefined, undefined])
  })

  test('is not followed a fourth time', async () => {
    await using elsewhere = await startServer(storage(3))
    await using registry = await startServer(guarded(elsewhere.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(elsewhere.requests).toHaveLength(3)
  })

  test('and leads back is read as by a stranger', async () => {
    await using registry: TestServer = await startServer((seen, outgoing) => guarded(elsewhere.url)(seen, outgoing))
    await using elsewhere: TestServer = await startServer(() => ({
      status: 307,
      headers: { location: `${registry.url}/back` },
    }))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(received(registry)).toEqual([undefined, basic, undefined])
  })

  test('is not read of this machine where the registry is elsewhere', async () => {
    await using local = await startServer(storage(0))
    await using registry = await startServer(() => ({ status: 307, headers: { location: local.url } }))
    const transport = routed({ 'https://registry.example': registry.url, [local.url]: local.url })
    const client = registryClient('registry.example', { transport })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(local.requests).toEqual([])
  })

  test('is there, as far as anybody asks, and nobody looks', async () => {
    await using elsewhere = await startServer(storage(0))
    await using registry = await startServer(guarded(elsewhere.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.hasBlob('a', blobOf('content').digest)).toBe(true)
    expect(elsewhere.requests).toEqual([])
  })
})
