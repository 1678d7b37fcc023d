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
const authorizationsOf = ({ requests }: TestServer) => requests.map(({ headers }) => headers.authorization)

describe('a token realm', () => {
  test.for<[where: string, problem: RegistryErrorKind, realm: (elsewhere: string) => string]>([
    ['on another host', 'refused', (url) => url.replace('127.0.0.1', 'localhost')],
    ['on another host with https', 'refused', () => 'https://evil.example/token'],
    ['on a trusted host without https', 'refused', () => 'http://auth.example/token'],
    ['on a host with a trusted prefix', 'refused', () => 'https://auth.example.evil.example/token'],
    ['on another host with the registry as user', 'refused', () => 'https://127.0.0.1@evil.example/token'],
    ['with a user name', 'refused', (url) => url.replace('http://', 'http://ada@')],
    ['that is a file', 'refused', () => 'file://127.0.0.1/etc/passwd'],
    ['that is no URL', 'invalid', () => 'token'],
  ])('%s is rejected (%s) and gets no request', async ([, problem, realm]) => {
    await using elsewhere = await startServer(() => ({ status: 200, body: '{"token":"t"}' }))
    await using registry = await startServer(() => bearer(realm(elsewhere.url)))
    const { client, sent } = clientOf(registry.host, { credentials, trustedRealms: ['auth.example'] })
    expect(await failureOf(all(client.tags('a')))).toMatchObject({ problem })
    expect(sent).toHaveLength(1)
    expect(elsewhere.requests).toEqual([])
  })

  test('on the own host without https is rejected and gets no credentials', async () => {
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
  test.for<[how: string, problem: RegistryErrorKind, requests: number, respond: (own: string) => Respond]>([
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
  ])('%s is an error (%s) after %i requests that contains no secret', async ([, problem, requests, respond]) => {
    await using registry = await startServer((request, outgoing) =>
      respond(`http://${request.headers.host}`)(request, outgoing),
    )
    const { client, sent } = clientOf(registry.host, { credentials })
    const failure = await failureOf(all(client.tags('a')))
    expect(failure.problem).toBe(problem)
    expect(failure.retryAfterSeconds).toBe(problem === 'unreachable' ? 9 : undefined)
    expect(sent).toHaveLength(requests)
    const text = inspect(failure, { depth: Infinity, showHidden: true })
    for (const secret of [ada.password, basic.slice('Basic '.length)]) expect(text).not.toContain(secret)
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

/** A registry that issues tokens at `/token` and rejects them. */
function tokenIs(reply: ServerReply): (own: string) => Respond {
  return (own) =>
    ({ url }) =>
      url.pathname === '/token' ? reply : bearer(`${own}/token`)
}

/** Redirects a number of times before it returns the blob. */
const storage = (hops: number): Respond => {
  let left = hops
  return () => ((left -= 1) < 0 ? { status: 200, body: 'content' } : { status: 302, headers: { location: '/next' } })
}
const redirecting =
  (location: string): Respond =>
  ({ headers, url }) => {
    if (url.pathname === '/back') return { status: 200, body: 'content' }
    return headers.authorization === basic ? { status: 307, headers: { location } } : challenge('Basic realm="here"')
  }

describe('a redirect of a blob', () => {
  test('to another host is followed without credentials', async () => {
    await using elsewhere = await startServer(storage(2))
    await using registry = await startServer(redirecting(`${elsewhere.url}/blob?signature=x`))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(authorizationsOf(registry)).toEqual([undefined, basic])
    expect(authorizationsOf(elsewhere)).toEqual([undefined, undefined, undefined])
  })

  test('is followed at most three times', async () => {
    await using elsewhere = await startServer(storage(3))
    await using registry = await startServer(redirecting(elsewhere.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(elsewhere.requests).toHaveLength(3)
  })

  test('back to the registry is followed without credentials', async () => {
    await using registry: TestServer = await startServer((request, outgoing) =>
      redirecting(elsewhere.url)(request, outgoing),
    )
    await using elsewhere: TestServer = await startServer(() => ({
      status: 307,
      headers: { location: `${registry.url}/back` },
    }))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.blob('a', blobOf('content'))).toEqual(Buffer.from('content'))
    expect(authorizationsOf(registry)).toEqual([undefined, basic, undefined])
  })

  test('from a remote registry to this machine is rejected', async () => {
    await using local = await startServer(storage(0))
    await using registry = await startServer(() => ({ status: 307, headers: { location: local.url } }))
    const transport = routed({ 'https://registry.example': registry.url, [local.url]: local.url })
    const client = registryClient('registry.example', { transport })
    expect(await failureOf(client.blob('a', blobOf('content')))).toMatchObject({ problem: 'refused' })
    expect(local.requests).toEqual([])
  })

  test('means that the blob exists, and is not followed', async () => {
    await using elsewhere = await startServer(storage(0))
    await using registry = await startServer(redirecting(elsewhere.url))
    const { client } = clientOf(registry.host, { credentials })
    expect(await client.hasBlob('a', blobOf('content').digest)).toBe(true)
    expect(elsewhere.requests).toEqual([])
  })
})
