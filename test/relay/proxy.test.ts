import { createServer, get } from 'node:http'
import { agentFor, proxyFor, ProxySettingError } from '@platform/relay/proxy'
import { expect, test, vi } from 'vitest'
import { listen } from '../support/http-server.ts'

const environment = {
  HTTPS_PROXY: 'http://user:p%40ss@proxy:3128',
  http_proxy: 'plain:8080',
  HTTP_PROXY: 'other:1',
  NO_PROXY:
    'exact.example.com, .inner.example.com,*.wild.example.com ports.example.com:8443,10.0.0.7,10.1.0.0/16,[fd00::1]:8443,fd01::/16,10.2.0.0/33,/8,a.b.',
}

test.each([
  ['https://platform.example.com', 'proxy:3128'],
  ['wss://platform.example.com', 'proxy:3128'],
  ['http://platform.example.com', 'plain:8080'],
  ['https://127.0.0.1:8080', undefined],
  ['http://localhost', undefined],
  ['https://[::1]:8443', undefined],
  ['https://exact.example.com', undefined],
  ['https://EXACT.example.com.', undefined],
  ['https://sub.exact.example.com', undefined],
  ['https://notexact.example.com', 'proxy:3128'],
  ['https://a.inner.example.com', undefined],
  ['https://b.wild.example.com', undefined],
  ['https://ports.example.com', 'proxy:3128'],
  ['https://ports.example.com:8443', undefined],
  ['https://10.0.0.7', undefined],
  ['https://10.0.0.70', 'proxy:3128'],
  ['https://10.1.255.255', undefined],
  ['https://10.2.0.0', 'proxy:3128'],
  ['https://[fd00::1]:8443', undefined],
  ['https://[fd00::1]', 'proxy:3128'],
  ['https://[fd01:0::2]', undefined],
  ['https://[fd02::2]', 'proxy:3128'],
  ['https://a.b', undefined],
])('%s uses the proxy %s', (url, expected) => {
  expect(proxyFor(new URL(url), environment)?.host).toBe(expected)
  expect(proxyFor(new URL(url), { ...environment, NO_PROXY: '*' })).toBeUndefined()
})

test.each([
  'http://',
  'socks5://proxy:1080',
  'http://user:pa/ss@proxy',
  'http://user:100%@proxy',
  'proxy:99999',
  'a b',
])('rejects the proxy %s without showing its password', (text) => {
  const choose = () => proxyFor(new URL('https://platform.example.com'), { HTTPS_PROXY: text })
  expect(choose).toThrow(ProxySettingError)
  expect(choose).toThrow(/^HTTPS_PROXY (?!.*(ss@|100%))/)
})

test.each([
  [200, 'opened'],
  [204, 'opened'],
  [299, 'opened'],
  [302, expect.stringContaining('(status 302)')],
])('status %i of CONNECT: %s', async (status, expected) => {
  const server = createServer().on('connect', (_, socket) => {
    socket.write(`HTTP/1.1 ${status} \r\n\r\n`)
    socket.once('end', () => socket.end())
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))
  })
  await using proxy = await listen(server)
  vi.stubEnv('http_proxy', proxy.url)
  const url = new URL('http://platform.invalid')
  const found = await new Promise((resolve) => {
    get(url, { agent: agentFor(url, { keepAlive: false }) }, () => resolve('opened')).once('error', ({ message }) =>
      resolve(message),
    )
  })
  vi.unstubAllEnvs()
  expect(found).toEqual(expected)
})
