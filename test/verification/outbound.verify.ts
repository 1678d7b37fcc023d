import type { ServerResponse } from 'node:http'
import { parseAllowlist } from '@platform/core/lib/settings/allowlist'
import { afterAll, beforeAll, test, vi } from 'vitest'
import { badUrls, privateAnswers, privateHosts } from '../core/support/addresses.ts'
import { startServer } from '../support/http-server.ts'
import type { UrlField } from './outbound/fields.ts'
import { isCanaryWorking, watchConnections } from './outbound/servers.ts'
import { claimAll, claimAtLeast, claimNone } from './support/claims.ts'
import { isShort, print } from './support/run.ts'

// Core reads the allow-list when it is imported, so the servers start before.
const [canary, allowed] = await vi.hoisted(async () => {
  const servers = await import('./outbound/servers.ts')
  const started = [await servers.startCanary(), await servers.startAllowedServers()] as const
  const { host, issuer } = started[1]
  Object.assign(process.env, { PLAT_OUTBOUND_ALLOW: `${host},${issuer.server.host}`, PLAT_WEBHOOK_ALLOW: host })
  return started
})
const { outboundFetch, OutboundError } = await import('@platform/core/outbound/outbound')
const { preparePortal } = await import('../core/support/oidc.ts')
const { urlFields } = await import('./outbound/fields.ts')

/** Public addresses in DNS answers of the tests. No server is reachable there. */
const publicAddresses = new Set(['1.2.3.4', '2606:4700::1111'])

/** Fields that the platform never calls itself; browsers do. */
const uncalledFields = ['publicUrl', 'authorization_endpoint']

const forbidden = watchConnections(publicAddresses)
let fields: readonly UrlField[] = []

beforeAll(async () => {
  await preparePortal()
  fields = urlFields(allowed)
})
afterAll(async () => {
  canary.close()
  await allowed.close()
})

function canaryAddresses(): URL[] {
  const hosts = [...privateHosts, 'localhost', 'localhost.', 'ip6-localhost', 'LOCALHOST', 'a.localhost']
  const validUrls = hosts.flatMap((host) => [`http://${host}:${canary.port}/x`, `https://${host}:${canary.port}/x`])
  const invalidUrls = badUrls.map((text) => text.replace('127.0.0.1:99999', `127.0.0.1:${canary.port}`))
  const parsed = [...validUrls, ...invalidUrls].map((text) => URL.parse(text)).filter((url) => url !== null)
  return parsed.filter((_, index) => !isShort || index % 40 === 0)
}

test('the test sees connections and calls of every field', async () => {
  claimAll('canaries that see connections', (await isCanaryWorking(canary)) ? 1 : 0, 1)
  const expected = fields.filter(({ name }) => !uncalledFields.includes(name))
  const unreachedFields: string[] = []
  for (const { name, use, countVisits = allowed.countVisits } of expected) {
    allowed.respondWith({ status: 404 })
    const countBefore = countVisits()
    await use(new URL(`${allowed.url}/x`)).catch(() => undefined)
    if (countVisits() === countBefore) unreachedFields.push(name)
  }
  claimNone('fields that do not reach an allowed address', unreachedFields, expected.length)
})

test('no field reaches an internal address in any spelling', async () => {
  const addresses = canaryAddresses()
  const reachedUrls: string[] = []
  for (const { name, use } of fields) {
    for (const address of addresses) {
      const countBefore = canary.countConnections()
      await use(address).catch(() => undefined)
      if (canary.countConnections() > countBefore) reachedUrls.push(`${name}: ${address.href}`)
    }
    if (!isShort) print(`${name}: ${addresses.length} addresses`)
  }
  if (!isShort) claimAtLeast('addresses for each field', addresses.length, 40)
  claimNone('connections to the canary', reachedUrls, fields.length * addresses.length)
  claimNone('connection attempts to other internal addresses', forbidden)
})

const dnsAnswers: readonly (readonly (readonly string[])[])[] = [
  ...privateAnswers.map((address) => [[address]]),
  ...[
    ['8.8.8.8', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8'],
    ['2606:4700::1111', '::1'],
    ['8.8.8.8', '::ffff:127.0.0.1'],
    ['8.8.8.8', '10.0.0.1', '1.1.1.1'],
  ].map((answer) => [answer]),
  [['1.2.3.4'], ['127.0.0.1']],
  [['127.0.0.1'], ['1.2.3.4']],
  [['2606:4700::1111'], ['::1']],
]

test('no DNS answer leads to an internal address', async () => {
  const countBefore = canary.countConnections()
  let calls = 0
  for (const answers of dnsAnswers) {
    let lookups = 0
    const resolve = async () => [...(answers[Math.min(lookups++, answers.length - 1)] ?? [])]
    for (const scheme of ['http', 'https', 'http', 'https']) {
      calls++
      const request = { method: 'GET', timeoutMs: 300, maxBytes: 1000 }
      const call = outboundFetch(`${scheme}://rebinding.example:${canary.port}/`, request, {
        allow: new Set(),
        resolve,
      })
      await call.catch((error: unknown) => {
        if (!(error instanceof OutboundError)) throw error
      })
    }
  }
  claimNone('connections to the canary', canary.countConnections() - countBefore, calls)
  claimNone('connection attempts to other internal addresses', forbidden)
})

const writeRepeatedly = (outgoing: ServerResponse, intervalMs: number, text: string): void => {
  const timer = setInterval(() => outgoing.write(text), intervalMs)
  outgoing.on('close', () => clearInterval(timer))
}

const misbehaviours: readonly [string, (outgoing: ServerResponse) => unknown][] = [
  ['never responds', () => undefined],
  ['sends one byte every 20 ms', (outgoing) => writeRepeatedly(outgoing, 20, 'x')],
  ['sends 64 KiB every millisecond', (outgoing) => writeRepeatedly(outgoing, 1, 'x'.repeat(65_536))],
  ['sends a header of 1 MB', (outgoing) => outgoing.writeHead(200, { 'x-large': 'x'.repeat(1_000_000) }).end()],
  ['announces 10 GB', (outgoing) => outgoing.writeHead(200, { 'content-length': 10_000_000_000 }).write('x')],
  [
    'sends informational responses forever',
    (outgoing) => {
      const timer = setInterval(() => outgoing.writeProcessing(), 10)
      outgoing.on('close', () => clearInterval(timer))
    },
  ],
  ['closes the connection', (outgoing) => outgoing.destroy()],
]

test.each(misbehaviours)('a call ends within its limits if the server %s', async (_name, misbehave) => {
  await using server = await startServer((_, outgoing) => void misbehave(outgoing))
  const limits = { method: 'GET', timeoutMs: 600, maxBytes: 100_000 }
  const call = outboundFetch(server.url, limits, { allow: parseAllowlist(server.host) })
  // The test runner's own limit fails a call that ignores its timeout.
  const response = await call.catch(() => undefined)
  claimNone('bytes beyond the limit', Math.max(0, (response?.body.length ?? 0) - limits.maxBytes))
})
