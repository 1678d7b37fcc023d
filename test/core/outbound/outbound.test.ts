import { once } from 'node:events'
import { createServer } from 'node:http'
import * as https from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { OutboundAllowlist, parseAllowlist } from '@platform/core/lib/settings/allowlist'
import { checkUrl, isPublicAddress, OutboundError, outboundFetch } from '@platform/core/outbound/outbound'
import { afterAll, expect, test, vi } from 'vitest'
import { badUrls, privateAnswers, privateHosts } from '../support/addresses.ts'
import { selfSigned } from '../support/certificate.ts'

const servers: Server[] = []
afterAll(() => servers.forEach((server) => server.close()))

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server)
  await once(server.listen(0, host), 'listening')
  return (server.address() as AddressInfo).port
}

/** Counts connections on all addresses of this machine; there must be none. */
let canaryConnections = 0
const canary = await listen(
  createTcpServer((socket) => {
    canaryConnections++
    socket.destroy()
  }),
  '::',
)
afterAll(() => expect(canaryConnections).toBe(0))

const request = { method: 'POST', body: '{}', timeoutMs: 1500, maxBytes: 1000 }
const noTargets = { allow: new Set<string>() }
const resolvingTo = (...addresses: string[]) => ({ ...noTargets, resolve: async () => addresses })
const namedUrl = `http://hooks.example:${canary}/`

async function errorOf(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof OutboundError ? error.problem : String(error)
  }
  return 'no error'
}

test.each(privateHosts)('rejects the private host %s before connecting', async (host) => {
  const url = `http://${host}:${canary}/`
  expect(await errorOf(() => checkUrl(url, noTargets))).toBe('address_not_allowed')
  expect(await errorOf(() => outboundFetch(url, request, noTargets))).toBe('address_not_allowed')
})

test.each(badUrls)('rejects the URL %j', async (url) => {
  expect(await errorOf(() => outboundFetch(url, request, noTargets))).toBe('url_not_allowed')
})

test.each([
  ...privateAnswers.map((address) => [address]),
  ['8.8.8.8', '127.0.0.1'],
  ['127.0.0.1', '8.8.8.8'],
  ['2606:4700::1111', '::1'],
])('rejects a name that resolves to %j %j', async (...addresses) => {
  expect(await errorOf(() => outboundFetch(namedUrl, request, resolvingTo(...addresses)))).toBe('address_not_allowed')
})

test('resolves a name once per call, which prevents DNS rebinding', async () => {
  const resolve = vi.fn(async () => ['127.0.0.1']).mockResolvedValueOnce(['1.2.3.4'])
  const overrides = { ...noTargets, resolve }
  // The first lookup returns a public address, where no server listens on this port.
  const firstError = errorOf(() => outboundFetch(namedUrl, { ...request, timeoutMs: 100 }, overrides))
  expect(['connection_failed', 'timed_out']).toContain(await firstError)
  expect(resolve).toHaveBeenCalledTimes(1)
  expect(await errorOf(() => outboundFetch(namedUrl, request, overrides))).toBe('address_not_allowed')
})

test('reports names that cannot be resolved', async () => {
  const failingOverrides = { ...noTargets, resolve: () => Promise.reject(new Error('SERVFAIL')) }
  for (const overrides of [resolvingTo(), failingOverrides]) {
    expect(await errorOf(() => outboundFetch(namedUrl, request, overrides))).toBe('name_not_resolved')
  }
})

test.each(['localhost', 'localhost.', 'ip6-localhost', 'LOCALHOST'])('does not resolve %s locally', async (name) => {
  const kind = await errorOf(() => outboundFetch(`http://${name}:${canary}/`, request, noTargets))
  expect(['name_not_resolved', 'address_not_allowed']).toContain(kind)
})

test.each([
  ...['1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '172.15.0.1', '172.32.0.1', '223.255.255.254'],
  ...['2606:4700:4700::1111', '2a00::1', '2001:4860:4860::8888'],
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

const receiver = await listen(
  createServer((incoming, response) => {
    const writeEvery = (ms: number, text: string) => {
      const timer = setInterval(() => response.write(text), ms)
      response.on('close', () => clearInterval(timer))
    }
    const responses: Record<string, () => unknown> = {
      '/redirect': () => response.writeHead(302, { location: `http://127.0.0.1:${canary}/` }).end(),
      '/hang': () => undefined,
      '/drip': () => writeEvery(20, 'x'),
      '/endless': () => writeEvery(1, 'x'.repeat(65_536)),
      '/truncated': () => response.writeHead(200, { 'content-length': '100' }).write('x', () => response.destroy()),
      '/headers': () => response.writeHead(200, { 'x-large': 'x'.repeat(100_000) }).end(),
      '/upgrade': () => response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end(),
      '/informational': () => setInterval(() => response.destroyed || response.writeProcessing(), 20).unref(),
    }
    const respond = responses[incoming.url ?? ''] ?? (() => response.end(`${incoming.method} ${incoming.headers.host}`))
    respond()
  }),
)
const allowedHosts = { allow: parseAllowlist(`127.0.0.1:${receiver}, localhost:${receiver}`) }
const urlOf = (path: string) => `http://127.0.0.1:${receiver}${path}`

test('calls allowed targets by address, by name and in other spellings', async () => {
  const { status, body, isCutShort } = await outboundFetch(urlOf('/'), request, allowedHosts)
  expect([status, body.toString(), isCutShort]).toEqual([200, `POST 127.0.0.1:${receiver}`, false])
  for (const host of ['localhost', '2130706433']) {
    expect((await outboundFetch(`http://${host}:${receiver}/`, request, allowedHosts)).status).toBe(200)
  }
})

test.each([
  `127.0.0.1:${canary}`,
  `127.0.0.2:${receiver}`,
  `[::1]:${receiver}`,
  `[::ffff:127.0.0.1]:${receiver}`,
  `hooks.example:${receiver}`,
])('rejects %s, which is not an allowed target', async (host) => {
  const overrides = { ...allowedHosts, resolve: async () => ['127.0.0.1'] }
  expect(await errorOf(() => outboundFetch(`http://${host}/`, request, overrides))).toBe('address_not_allowed')
})

test('uses the default port of the scheme', async () => {
  const allow = parseAllowlist('10.0.0.1:80,10.0.0.2:443')
  expect(checkUrl('http://10.0.0.1/', { allow }).port).toBe('')
  expect(checkUrl('https://10.0.0.2/', { allow }).port).toBe('')
  expect(await errorOf(() => checkUrl('https://10.0.0.1/', { allow }))).toBe('address_not_allowed')
})

test('returns redirects instead of following them', async () => {
  const { status, headers } = await outboundFetch(urlOf('/redirect'), request, allowedHosts)
  expect([status, headers.location]).toEqual([302, `http://127.0.0.1:${canary}/`])
})

test.each([
  ['/hang', 'timed_out'],
  ['/drip', 'timed_out'],
  ['/informational', 'timed_out'],
  ['/truncated', 'connection_failed'],
  ['/headers', 'connection_failed'],
  ['/upgrade', 'connection_failed'],
])('the response at %s ends with the error %s', async (path, kind) => {
  const timeoutMs = kind === 'timed_out' ? 500 : 10_000
  expect(await errorOf(() => outboundFetch(urlOf(path), { ...request, timeoutMs }, allowedHosts))).toBe(kind)
})

test('reads an endless response only up to the limit', async () => {
  const { status, body, isCutShort } = await outboundFetch(urlOf('/endless'), request, allowedHosts)
  expect([status, body.length, isCutShort]).toEqual([200, 1000, true])
})

test('rejects untrusted certificates and ignores proxies, regardless of the environment', async () => {
  const port = await listen(https.createServer(selfSigned('localhost'), (_, response) => response.end('secret')))
  const allowlist = parseAllowlist(`localhost:${port}`)
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  vi.stubEnv('http_proxy', `http://127.0.0.1:${canary}`)
  vi.stubEnv('NODE_USE_ENV_PROXY', '1')
  try {
    const call = () => outboundFetch(`https://localhost:${port}/`, request, { allow: allowlist })
    expect(await errorOf(call)).toBe('certificate_not_trusted')
    expect((await outboundFetch(urlOf('/'), request, allowedHosts)).status).toBe(200)
  } finally {
    vi.unstubAllEnvs()
  }
})

test.each(['', '127.0.0.1:9000', 'hooks.internal:443', '[::1]:8080', ' a:1 , b:2 ,', '10.0.0.1:65535'])(
  'accepts the setting %j',
  (text) => {
    expect(OutboundAllowlist.safeParse(text).success).toBe(true)
  },
)

test.each([
  ...['127.0.0.1', 'host', 'host:', ':80', 'host:99999', 'http://host:80'],
  ...['host:80/path', '::1:80', '*', 'u@h:80'],
])('rejects the setting %j', (text) => {
  expect(OutboundAllowlist.safeParse(text).success).toBe(false)
})
