import { permissionsOf } from '@platform/contract/permission'
import { signIn } from '@platform/core/accounts/session'
import * as User from '@platform/core/accounts/user'
import * as keys from '@platform/core/db/keys'
import { layoutVersion } from '@platform/core/db/schema'
import { getConsistent, patch, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import type { PlatformError } from '@platform/core/error'
import { relayCommand } from '@platform/core/clusters/enrollment-token'
import { portalConfiguration } from '@platform/core/dashboard/portal-configuration'
import { publicUrl } from '@platform/core/identity-providers/provider'
import * as Settings from '@platform/core/platform/settings'
import { bootstrap } from '@platform/core/platform/bootstrap'
import { complete } from '@platform/core/platform/setup'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { beforeEach, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import * as fixtures from '../../support/fixtures.ts'
import { readPendingRecords } from '../support/outbox.ts'

const { administrator, adminToken, errorCodeOf, expectError } = fixtures
const origin = { address: '192.0.2.1' }
const completeWith = (initialAdminToken: string, fields = {}) =>
  complete({ ...administrator, initialAdminToken, ...fields }, origin)

beforeEach(async () => {
  await transact([remove(keys.platform()), remove(keys.username('admin'))])
  await fixtures.bootstrapPlatform()
})

test('completes one of sixteen concurrent setups', async () => {
  const token = await adminToken()
  const outcomes = await Promise.all(Array.from({ length: 16 }, () => errorCodeOf(completeWith(token))))
  expect(outcomes.filter((code) => code === 'no error')).toHaveLength(1)
  // The limit on concurrent password hashes may reject a request first.
  const otherOutcomes = outcomes.filter((code) => code !== 'no error' && code !== 'rate_limited')
  expect(new Set(otherOutcomes)).toEqual(new Set(['setup_already_complete']))
  const tokens = await signIn({ username: 'Admin', password: administrator.adminPassword }, origin)
  expect(tokens).toMatchObject({ expiresIn: 900, tokenType: 'Bearer' })
})

test('creates the platform organisation with one administrator', async () => {
  const tokens = await completeWith(await adminToken())
  const caller = await verifyAccessToken(tokens.accessToken)
  const { organisationId, userId } = caller
  expect([...caller.permissions].toSorted()).toEqual(permissionsOf(['PlatformAdmin']).toSorted())
  const { platformName, publicUrl, timezone, adminEmail: email } = administrator
  const [platform, organisation] = await getConsistent([keys.platform(), keys.organisation(organisationId)])
  expect(platform).toMatchObject({ setupComplete: true, platformName, publicUrl, timezone })
  expect(platform).not.toHaveProperty('tokenHash')
  expect(organisation).toMatchObject({ id: organisationId, name: platformName, timezone, isPlatform: true })
  const user = { id: userId, username: 'admin', email, roles: ['PlatformAdmin'], authProvider: 'local' }
  expect(await User.list(caller, { page: 1, pageSize: 20 })).toMatchObject({ totalCount: 1, items: [user] })
  expect(await readPendingRecords(organisationId)).toMatchObject([
    {
      address: origin.address,
      audit: { action: 'setup.complete', resource: organisationId, detail: 'Administrator admin' },
      events: [{ name: 'setup.completed', subject: organisationId, data: { platformName, organisationId } }],
    },
  ])
})

test('a new public address applies to redirects, relay commands and the check of origins, and is audited', async () => {
  const caller = await verifyAccessToken((await completeWith(await adminToken())).accessToken)
  const originalUrl = administrator.publicUrl
  await portalConfiguration()
  const changedSettings = { ...(await Settings.read()), publicUrl: 'https://new.example.com' }
  expect(await Settings.update(caller, { publicUrl: changedSettings.publicUrl })).toEqual(changedSettings)
  expect(await Settings.read()).toEqual(changedSettings)
  expect(await publicUrl()).toBe(changedSettings.publicUrl)
  const [platform] = await getConsistent([keys.platform()])
  expect(relayCommand({ host: 'new.example.com' }, platform, 'A=1')).toContain(`--server ${changedSettings.publicUrl}`)
  advanceClock(60_000)
  expect(await portalConfiguration()).toMatchObject({ publicUrl: changedSettings.publicUrl })
  const audit = {
    action: 'platform.update_settings',
    detail: `publicUrl ${changedSettings.publicUrl}, before ${originalUrl}`,
  }
  expect((await readPendingRecords(caller.organisationId)).at(-1)).toMatchObject({ audit })
})

test('keeps the token valid after a rejected request', async () => {
  const token = await adminToken()
  for (const adminPassword of ['short', 'football1'])
    await expectError(completeWith(token, { adminPassword }), 'validation_failed')
  expect(await completeWith(token)).toMatchObject({ tokenType: 'Bearer' })
})

test.each([
  ['a list', [], 'invalid_json'],
  ['no body', undefined, 'invalid_json'],
  ['no token', {}, 'initial_admin_token_invalid'],
  ['a wrong token', { initialAdminToken: 'admin.wrong' }, 'initial_admin_token_invalid'],
  ['a token of another type', { initialAdminToken: 7 }, 'initial_admin_token_invalid'],
])('rejects %s before it validates fields', async (_, body, code) => expectError(complete(body), code))

test.each([
  ['platform.example.com', 'must be a URL'],
  ['http://platform.example.com', 'must begin with https://'],
  ['https://admin@platform.example.com', 'must have no user'],
  ['https://platform.example.com/portal', 'must have no path'],
  ['https://platform.example.com/a/', 'must have no path'],
])('rejects the public URL %s: %s', async (publicUrl, message) => {
  const error = await completeWith(await adminToken(), { publicUrl }).catch((cause: PlatformError) => cause)
  const details = [{ in: 'body', path: '/publicUrl', code: 'custom', message: expect.stringContaining(message) }]
  expect(error).toMatchObject({ code: 'validation_failed', extra: { details } })
})

test('rejects a token after 24 hours', async () => {
  const setup = { ...administrator, initialAdminToken: await adminToken() }
  advanceClock(24 * 3_600_000)
  const code = 'initial_admin_token_expired'
  await expectError(complete(setup), code)
  expect(await fixtures.requestErrorCode('setup', 'POST /api/v1/setup/complete', undefined, setup)).toBe(code)
})

test('replaces the token at the second restart', async () => {
  const firstToken = await adminToken()
  await bootstrap()
  expect(await adminToken()).toBe(firstToken)
  await bootstrap()
  expect(await adminToken()).not.toBe(firstToken)
  await expectError(completeWith(firstToken), 'initial_admin_token_invalid')
  expect(await completeWith(await adminToken())).toMatchObject({ expiresIn: 900 })
})

test.each([undefined, layoutVersion + 1])('does not start with a table of layout %s', async (layout) => {
  await transact([patch(keys.platform(), layout === undefined ? { remove: ['layout'] } : { set: { layout } })])
  await expect(bootstrap()).rejects.toThrow(`requires layout ${layoutVersion}. Deploy the version that wrote`)
})

test('creates one valid token at concurrent starts', async () => {
  await transact([remove(keys.platform())])
  await Promise.all(Array.from({ length: 4 }, () => bootstrap()))
  expect(await completeWith(await adminToken())).toMatchObject({ expiresIn: 900 })
})
