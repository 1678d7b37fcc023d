import { createServer } from 'node:http'
import * as https from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { outboundFetch, checkUrl, OutboundError, isPublicAddress } from '@platform/core/outbound/outbound'
import { OutboundAllowlist, parseAllowlist } from '@platform/core/lib/settings/allowlist'
import { badUrls, privateAnswers, privateHosts } from '../support/addresses.ts'
import { selfSigned } from '../support/certificate.ts'

const servers: Server[] = []
afterAll(() => servers.forEach((server) => server.close()))

async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server)
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Whatever connects to it came where nobody may: it listens on every loopback and local address of this machine. */
let intrusions = 0
const canary = await listening(
  createTcpServer((socket) => {
    intrusions++
    socket.destroy()
  }),
  '::',
)

const request = { method: 'POST', body: '{}', timeoutMs: 1500, maxBytes: 1000 }
const nobody = { allow: new Set<string>() }

/** The problem of a call that must fail. */
async function problemOf(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof OutboundError ? error.problem : String(error)
  }
  return 'it was answered'
}

test.each(privateHosts)('the address %s is refused before anything connects', async (host) => {
  const url = `http://${host}:${canary}/`
  expect(await problemOf(() => checkUrl(url, nobody))).toBe('address_not_allowed')
  expect(await problemOf(() => outboundFetch(url, request, nobody))).toBe('address_not_allowed')
})

test.each(badUrls)('%j is no address that can be called', async (url) => {
  expect(await problemOf(() => outboundFetch(url, request, nobody))).toBe('url_not_allowed')
})

const answers = (...addresses: string[]) => ({ ...nobody, resolve: async () => addresses })

test.each(privateAnswers)('a name that leads to %j reaches nothing', async (address) => {
  const url = `http://hooks.example:${canary}/`
  expect(await problemOf(() => outboundFetch(url, request, answers(address)))).toBe('address_not_allowed')
})

test('a name that leads to a public and to a private address is refused as a whole, in any order', async () => {
  for (const addresses of [
    ['8.8.8.8', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8'],
    ['2606:4700::1111', '::1'],
  ]) {
    const url = `http://hooks.example:${canary}/`
    expect(await problemOf(() => outboundFetch(url, request, answers(...addresses)))).toBe('address_not_allowed')
  }
})

test('a name that changes its answer between check and connection gains nothing: it is asked once for each call', async () => {
  const given = [['1.2.3.4'], ['127.0.0.1']]
  let asked = 0
  const surroundings = { ...nobody, resolve: async () => given[asked++] ?? ['127.0.0.1'] }
  // The first answer is public: the call goes there, and nowhere else. Nothing answers on this port.
  const hurried = { ...request, timeoutMs: 100 }
  expect(['connection_failed', 'timed_out']).toContain(
    await problemOf(() => outboundFetch(`http://rebind.example:${canary}/`, hurried, surroundings)),
  )
  expect(asked).toBe(1)
  expect(await problemOf(() => outboundFetch(`http://rebind.example:${canary}/`, request, surroundings))).toBe(
    'address_not_allowed',
  )
})

test('a name without an address, or whose resolution fails, is not resolved', async () => {
  const failing = { ...nobody, resolve: () => Promise.reject(new Error('SERVFAIL')) }
  expect(await problemOf(() => outboundFetch('http://hooks.example/', request, answers()))).toBe('name_not_resolved')
  expect(await problemOf(() => outboundFetch('http://hooks.example/', request, failing))).toBe('name_not_resolved')
})

test('names of this machine are not asked of this machine', async () => {
  for (const name of ['localhost', 'localhost.', 'ip6-localhost', 'LOCALHOST']) {
    const problem = await problemOf(() => outboundFetch(`http://${name}:${canary}/`, request, nobody))
    expect(['name_not_resolved', 'address_not_allowed']).toContain(problem)
  }
})

test('public addresses are public, those beside special ranges too', () => {
  for (const address of [
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '172.15.0.1',
    '172.32.0.1',
    '223.255.255.254',
  ])
    expect([address, isPublicAddress(address)]).toEqual([address, true])
  for (const address of ['2606:4700:4700::1111', '2a00::1', '2001:4860:4860::8888'])
    expect([address, isPublicAddress(address)]).toEqual([address, true])
})

const receiver = await listening(
  createServer((incoming, response) => {
    const drip = (everyMs: number, text: string) => {
      const timer = setInterval(() => response.write(text), everyMs)
      response.on('close', () => clearInterval(timer))
    }
    const kinds: Record<string, () => unknown> = {
      '/inward': () => response.writeHead(302, { location: `http://127.0.0.1:${canary}/` }).end(),
      '/hang': () => undefined,
      '/drip': () => drip(20, 'x'),
      '/endless': () => drip(1, 'x'.repeat(65_536)),
      '/cut': () => response.writeHead(200, { 'content-length': '100' }).write('x', () => response.destroy()),
      '/headers': () => response.writeHead(200, { 'x-large': 'x'.repeat(100_000) }).end(),
      '/upgrade': () => response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end(),
      '/informational': () => setInterval(() => response.destroyed || response.writeProcessing(), 20).unref(),
    }
    const answer = kinds[incoming.url ?? ''] ?? (() => response.end(`${incoming.method} ${incoming.headers.host}`))
    answer()
  }),
)
const friend = { allow: parseAllowlist(`127.0.0.1:${receiver}, localhost:${receiver}`) }
const at = (path: string) => `http://127.0.0.1:${receiver}${path}`

test('what the operator has named is reached, by its address and by its name', async () => {
  const { status, body, isCutShort } = await outboundFetch(at('/'), request, friend)
  expect([status, body.toString(), isCutShort]).toEqual([200, `POST 127.0.0.1:${receiver}`, false])
  expect((await outboundFetch(`http://localhost:${receiver}/`, request, friend)).status).toBe(200)
  // The same address, spelled another way.
  expect((await outboundFetch(`http://2130706433:${receiver}/`, request, friend)).status).toBe(200)
})

test('what the operator has named opens no other port, host or name', async () => {
  for (const host of [
    `127.0.0.1:${canary}`,
    `127.0.0.2:${receiver}`,
    `[::1]:${receiver}`,
    `[::ffff:127.0.0.1]:${receiver}`,
  ])
    expect([host, await problemOf(() => outboundFetch(`http://${host}/`, request, friend))]).toEqual([
      host,
      'address_not_allowed',
    ])
  const renamed = { ...friend, resolve: async () => ['127.0.0.1'] }
  expect(await problemOf(() => outboundFetch(`http://hooks.example:${receiver}/`, request, renamed))).toBe(
    'address_not_allowed',
  )
})

test('an address without a port means that of its scheme', async () => {
  const allow = parseAllowlist('10.0.0.1:80,10.0.0.2:443')
  expect(checkUrl('http://10.0.0.1/', { allow }).port).toBe('')
  expect(checkUrl('https://10.0.0.2/', { allow }).port).toBe('')
  expect(await problemOf(() => checkUrl('https://10.0.0.1/', { allow }))).toBe('address_not_allowed')
})

test('a redirect is an answer, and is not followed', async () => {
  const { status, headers } = await outboundFetch(at('/inward'), request, friend)
  expect([status, headers.location]).toEqual([302, `http://127.0.0.1:${canary}/`])
})

test.each([
  ['/hang', 'timed_out'],
  ['/drip', 'timed_out'],
  ['/informational', 'timed_out'],
  ['/cut', 'connection_failed'],
  ['/headers', 'connection_failed'],
  ['/upgrade', 'connection_failed'],
])('a receiver that answers like %s ends as %s', async (path, problem) => {
  expect(await problemOf(() => outboundFetch(at(path), { ...request, timeoutMs: 500 }, friend))).toBe(problem)
})

test('of an answer without end no more is read than was asked for', async () => {
  const { status, body, isCutShort } = await outboundFetch(at('/endless'), request, friend)
  expect([status, body.length, isCutShort]).toEqual([200, 1000, true])
})

test('a certificate that nobody vouches for is not trusted, whatever the environment says', async () => {
  const secure = https.createServer(selfSigned('localhost'), (_, response) => response.end('secret'))
  const port = await listening(secure)
  const allow = parseAllowlist(`localhost:${port}`)
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  try {
    expect(await problemOf(() => outboundFetch(`https://localhost:${port}/`, request, { allow }))).toBe(
      'certificate_not_trusted',
    )
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  }
})

test('proxies of the environment are not used', async () => {
  Object.assign(process.env, { http_proxy: `http://127.0.0.1:${canary}`, NODE_USE_ENV_PROXY: '1' })
  try {
    expect((await outboundFetch(at('/'), request, friend)).status).toBe(200)
  } finally {
    delete process.env['http_proxy']
    delete process.env['NODE_USE_ENV_PROXY']
  }
})

test.each(['', '127.0.0.1:9000', 'hooks.internal:443', '[::1]:8080', ' a:1 , b:2 ,', '10.0.0.1:65535'])(
  'the setting %j is valid',
  (text) => {
    expect(OutboundAllowlist.safeParse(text).success).toBe(true)
  },
)

test.each([
  '127.0.0.1',
  'host',
  'host:',
  ':80',
  'host:99999',
  'http://host:80',
  'host:80/path',
  '::1:80',
  '*',
  'u@h:80',
])('the setting %j is refused', (text) => {
  expect(OutboundAllowlist.safeParse(text).success).toBe(false)
})

// The last word: none of all that has reached what listens on this machine.
afterAll(() => expect(intrusions).toBe(0))
