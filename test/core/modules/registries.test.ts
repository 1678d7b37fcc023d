import { generateKeyPairSync } from 'node:crypto'
import { writeSecret } from '@platform/core/aws/secrets'
import { config } from '@platform/core/config'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { registryClientFor } from '@platform/core/modules/registries'
import { generateKeyPair } from '@platform/oci/signature/key'
import { afterAll, expect, test, vi } from 'vitest'
import { captureLog } from '../../support/log.ts'
import { advanceClock } from '../../support/clock.ts'
import { minuteMs } from '../support/notifications.ts'

const { received, first, second } = await vi.hoisted(async () => {
  const { startServer } = await import('../../support/http-server.ts')
  const received: (string | undefined)[] = []
  const start = () =>
    startServer(({ headers }) => {
      received.push(headers.authorization)
      const challenge = { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }
      return headers.authorization === undefined ? challenge : { status: 404 }
    })
  const [first, second] = [await start(), await start()]
  Object.assign(process.env, { PLAT_REGISTRY_ALLOW: `${first.host},${second.host}` })
  return { received, first, second }
})
afterAll(async () => {
  await first[Symbol.asyncDispose]()
  await second[Symbol.asyncDispose]()
})

const basic = (password: string) => `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`
const storeCredentials = (hosts: object) => writeSecret(config.PLAT_SECRET_REGISTRIES, JSON.stringify(hosts))

async function credentialsSentTo(host: string): Promise<(string | undefined)[]> {
  received.length = 0
  const resolving = registryClientFor(host).resolve('team/hello', '1.0.0')
  await resolving.catch(() => undefined)
  return [...received]
}

test('sends a registry only its own credentials, after a challenge', async () => {
  await storeCredentials({ [first.host]: { username: 'ada', password: 'one' } })
  expect(await credentialsSentTo(first.host)).toEqual([undefined, basic('one')])
  expect(await credentialsSentTo(second.host)).toEqual([undefined])
})

test('caches credentials for five minutes', async () => {
  await storeCredentials({ [first.host]: { username: 'ada', password: 'two' } })
  expect(await credentialsSentTo(first.host)).toEqual([undefined, basic('one')])
  advanceClock(5 * minuteMs)
  expect(await credentialsSentTo(first.host)).toEqual([undefined, basic('two')])
})

test('ignores invalid credentials and does not log them', async () => {
  advanceClock(20 * minuteMs)
  await writeSecret(config.PLAT_SECRET_REGISTRIES, '{"password": "S3CRET"')
  const lines = await captureLog(async () => expect(await credentialsSentTo(first.host)).toEqual([undefined]))
  expect(lines).toMatchObject([{ level: 'error', secret: config.PLAT_SECRET_REGISTRIES }])
  expect(JSON.stringify(lines)).not.toContain('S3CRET')
})

const { publicKeyPem: pem, privateKeyPem } = generateKeyPair()
const pemOf = ({ publicKey }: ReturnType<typeof generateKeyPairSync>): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString()
const parseKeys = (value: unknown) =>
  parseConfig({ PLAT_MODULE_KEYS: typeof value === 'string' ? value : JSON.stringify(value) }).PLAT_MODULE_KEYS

test('parses trusted keys with their limits', () => {
  const dates = { notBefore: '2026-01-01T00:00:00Z', notAfter: '2027-01-01T00:00:00+01:00' }
  const limitedKey = { name: 'b', pem, repositories: ['team'], ...dates }
  const ed25519 = { name: 'c', pem: pemOf(generateKeyPairSync('ed25519')) }
  expect(parseKeys([{ name: 'a', pem }, limitedKey, ed25519])).toEqual([{ name: 'a', pem }, limitedKey, ed25519])
  expect(parseConfig({}).PLAT_MODULE_KEYS).toEqual([])
})

test.each([
  ['invalid JSON', 'no'],
  ['an object', {}],
  ['a key without a name', [{ pem }]],
  ['an invalid key', [{ name: 'a', pem: 'x' }]],
  ['a private key', [{ name: 'a', pem: privateKeyPem }]],
  ['a damaged key', [{ name: 'a', pem: pem.replace('MF', 'XX') }]],
  ['a weak key', [{ name: 'a', pem: pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 })) }]],
  ['a key on another curve', [{ name: 'a', pem: pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })) }]],
  ['a key that cannot sign', [{ name: 'a', pem: pemOf(generateKeyPairSync('x25519')) }]],
  ['an empty list of repositories', [{ name: 'a', pem, repositories: [] }]],
  ['an unknown limit', [{ name: 'a', pem, notafter: '2027-01-01T00:00:00Z' }]],
  ['an invalid date', [{ name: 'a', pem, notAfter: 'soon' }]],
])('rejects %s as trusted keys', (_, value) => {
  expect(() => parseKeys(value)).toThrow(/PLAT_MODULE_KEYS/)
})
