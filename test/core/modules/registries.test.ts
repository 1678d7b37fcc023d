import { afterAll, expect, test, vi } from 'vitest'
import { config } from '@platform/core/config'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { registryClientFor } from '@platform/core/modules/registries'
import { writeSecret } from '@platform/core/aws/secrets'
import { generateKeyPair } from '@platform/oci/signature/key'
import { captureLog } from '../../support/log.ts'
import { advanceClock, minute } from '../support/notifications.ts'

/** Two registries that want a password, and tell with what they were asked. */
const { asked, first, second } = await vi.hoisted(async () => {
  const { startServer } = await import('../../support/http-server.ts')
  const asked: (string | undefined)[] = []
  const start = () =>
    startServer(({ headers }) => {
      asked.push(headers.authorization)
      const refusal = { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }
      return headers.authorization === undefined ? refusal : { status: 404 }
    })
  const [first, second] = [await start(), await start()]
  Object.assign(process.env, { PLAT_REGISTRY_ALLOW: `${first.host},${second.host}` })
  return { asked, first, second }
})
afterAll(async () => {
  await first[Symbol.asyncDispose]()
  await second[Symbol.asyncDispose]()
})

const basic = (password: string) => `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`
const give = (hosts: Record<string, unknown>) => writeSecret(config.PLAT_SECRET_REGISTRIES, JSON.stringify(hosts))

/** What a registry was asked with, in the order of its requests. */
async function askedBy(host: string): Promise<(string | undefined)[]> {
  asked.length = 0
  await registryClientFor(host)
    .resolve('team/hello', '1.0.0')
    .catch(() => undefined)
  return [...asked]
}

test('a registry is shown its own credentials, and those only where it asks for them', async () => {
  await give({ [first.host]: { username: 'ada', password: 'one' } })
  expect(await askedBy(first.host)).toEqual([undefined, basic('one')])
  expect(await askedBy(second.host)).toEqual([undefined])
})

test('other credentials are in use after five minutes; until then nobody is asked for them again', async () => {
  await give({ [first.host]: { username: 'ada', password: 'two' } })
  expect(await askedBy(first.host)).toEqual([undefined, basic('one')])
  advanceClock(5 * minute)
  expect(await askedBy(first.host)).toEqual([undefined, basic('two')])
})

test('what is no list of credentials is as none, and nothing of it is told', async () => {
  advanceClock(20 * minute)
  await writeSecret(config.PLAT_SECRET_REGISTRIES, '{"password": "S3CRET"')
  const lines = await captureLog(async () => expect(await askedBy(first.host)).toEqual([undefined]))
  expect(lines).toMatchObject([{ level: 'error', secret: config.PLAT_SECRET_REGISTRIES }])
  expect(JSON.stringify(lines)).not.toContain('S3CRET')
})

const { publicKeyPem: pem, privateKeyPem } = generateKeyPair()
const keysOf = (keys: unknown) =>
  parseConfig({ PLAT_MODULE_KEYS: typeof keys === 'string' ? keys : JSON.stringify(keys) })

test('trusted keys are read at the start, with what limits them', () => {
  const limited = {
    name: 'b',
    pem,
    repositories: ['team'],
    notBefore: '2026-01-01T00:00:00Z',
    notAfter: '2027-01-01T00:00:00+01:00',
  }
  expect(keysOf([{ name: 'a', pem }, limited]).PLAT_MODULE_KEYS).toEqual([{ name: 'a', pem }, limited])
  expect(parseConfig({}).PLAT_MODULE_KEYS).toEqual([])
})

test.each([
  ['no JSON', 'no'],
  ['no list', {}],
  ['no name', [{ pem }]],
  ['no key', [{ name: 'a', pem: 'x' }]],
  ['a private key', [{ name: 'a', pem: privateKeyPem }]],
  ['a broken key', [{ name: 'a', pem: pem.replace('MF', 'XX') }]],
  ['no repository at all', [{ name: 'a', pem, repositories: [] }]],
  ['a misspelt limit', [{ name: 'a', pem, notafter: '2027-01-01T00:00:00Z' }]],
  ['a date that is none', [{ name: 'a', pem, notAfter: 'soon' }]],
])('a start with trusted keys that cannot be read ends at once, and says where: %s', (_, keys) => {
  expect(() => keysOf(keys)).toThrow(/PLAT_MODULE_KEYS/)
})
