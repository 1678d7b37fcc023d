import { beforeEach, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { permissionsOf } from '@platform/contract/permission'
import { bootstrap } from '@platform/core/platform/bootstrap'
import * as keys from '@platform/core/db/keys'
import { getConsistent, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { complete } from '@platform/core/platform/setup'
import { signIn } from '@platform/core/accounts/session'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import * as User from '@platform/core/accounts/user'
import { administrator, adminToken, requestErrorCode, bootstrapPlatform, expectError } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'

const origin = { address: '192.0.2.1' }

// Each test is a platform that has never been set up.
beforeEach(async () => {
  await transact([remove(keys.platform()), remove(keys.username('admin'))])
  await bootstrapPlatform()
})

test('of sixteen that complete setup at once exactly one wins, and its administrator signs in', async () => {
  const initialAdminToken = await adminToken()
  const body = { ...administrator, initialAdminToken }
  const outcomes = await Promise.allSettled(Array.from({ length: 16 }, () => complete(body)))
  const codes = outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? 'won' : (outcome.reason as { code: string }).code,
  )
  expect(codes.filter((code) => code === 'won')).toHaveLength(1)
  // A loser is told so, or that too many passwords are being hashed at this moment: never anything else.
  expect(new Set(codes.filter((code) => code !== 'won' && code !== 'rate_limited'))).toEqual(
    new Set(['setup_already_complete']),
  )
  const tokens = await signIn({ username: 'Admin', password: administrator.adminPassword }, origin)
  expect(tokens).toMatchObject({ expiresIn: 900, tokenType: 'Bearer' })
})

test('setup makes the organisation of the platform with one administrator, and tells it', async () => {
  const tokens = await complete({ ...administrator, initialAdminToken: await adminToken() }, origin)
  const caller = await verifyAccessToken(tokens.accessToken)
  const { organisationId, userId } = caller
  expect([...caller.permissions].toSorted()).toEqual(permissionsOf(['PlatformAdmin']).toSorted())
  const { platformName, publicUrl, timezone } = administrator
  const [platform, organisation] = await getConsistent([keys.platform(), keys.organisation(organisationId)])
  expect(platform).toMatchObject({ setupComplete: true, platformName, publicUrl, timezone })
  expect(platform).not.toHaveProperty('tokenHash')
  expect(organisation).toMatchObject({ id: organisationId, name: platformName, timezone, isPlatform: true })
  expect(await User.list(caller, { page: 1, pageSize: 20 })).toMatchObject({
    totalCount: 1,
    items: [
      {
        id: userId,
        username: 'admin',
        email: administrator.adminEmail,
        roles: ['PlatformAdmin'],
        authProvider: 'local',
      },
    ],
  })
  expect(await pendingRecords(organisationId)).toMatchObject([
    {
      address: origin.address,
      audit: { action: 'setup.complete', resource: organisationId, detail: 'Administrator admin' },
      events: [{ name: 'setup.completed', subject: organisationId, data: { platformName, organisationId } }],
    },
  ])
})

test('a refused request never burns the token', async () => {
  const initialAdminToken = await adminToken()
  await expectError(complete({ ...administrator, adminPassword: 'short', initialAdminToken }), 'validation_failed')
  expect(await complete({ ...administrator, initialAdminToken })).toMatchObject({ tokenType: 'Bearer' })
})

test.each([
  ['not an object', [], 'invalid_json'],
  ['nothing', undefined, 'invalid_json'],
  ['no token', {}, 'initial_admin_token_invalid'],
  ['a wrong token', { initialAdminToken: 'admin.wrong' }, 'initial_admin_token_invalid'],
  ['a token of another type', { initialAdminToken: 7 }, 'initial_admin_token_invalid'],
])('%s is refused before any field is looked at', async (_, body, code) => {
  await expectError(complete(body), code)
})

test('a token expires after 24 hours', async () => {
  const initialAdminToken = await adminToken()
  advanceClock(24 * 3_600_000)
  try {
    const setup = { ...administrator, initialAdminToken }
    await expectError(complete(setup), 'initial_admin_token_expired')
    const asked = await requestErrorCode('setup', 'POST /api/v1/setup/complete', undefined, setup)
    expect(asked).toBe('initial_admin_token_expired')
  } finally {
  }
})

test('restarting twice mints a fresh token and the old one dies; restarting once does not', async () => {
  const first = await adminToken()
  await bootstrap()
  expect(await adminToken()).toBe(first)
  await bootstrap()
  expect(await adminToken()).not.toBe(first)
  await expectError(complete({ ...administrator, initialAdminToken: first }), 'initial_admin_token_invalid')
  expect(await complete({ ...administrator, initialAdminToken: await adminToken() })).toMatchObject({ expiresIn: 900 })
})

test('starts at the same moment leave one token, and it works', async () => {
  await transact([remove(keys.platform())])
  await Promise.all(Array.from({ length: 4 }, () => bootstrap()))
  expect(await complete({ ...administrator, initialAdminToken: await adminToken() })).toMatchObject({ expiresIn: 900 })
})
