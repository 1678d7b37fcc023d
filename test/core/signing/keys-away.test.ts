import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { refresh, signIn } from '@platform/core/accounts/session'
import { list } from '@platform/core/accounts/session'
import { complete } from '@platform/core/platform/setup'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { administrator, adminToken, errorCodeOf, bootstrapPlatform } from '../../support/fixtures.ts'

/** What signs tokens may be out of reach for a while: nothing happens then whose tokens nobody could be given. */

const client = new SecretsManagerClient()
const SecretId = config.PLAT_SECRET_SIGNING_KEYS
const origin = { address: '192.0.2.1' }
const credentials = { username: 'admin', password: administrator.adminPassword }
/** Longer than a process believes what it has read of keys. */
const forgottenMs = 301_000

/** Does work while the keys cannot be had, and the process has forgotten them. */
async function withoutKeys<Result>(work: () => Promise<Result>): Promise<Result> {
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }))
  await client.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true }))
  shiftClock(forgottenMs)
  try {
    return await work()
  } finally {
    await client.send(new CreateSecretCommand({ Name: SecretId, SecretString }))
  }
}

test('setup stays open, and its token good', async () => {
  await bootstrapPlatform()
  const request = { ...administrator, initialAdminToken: await adminToken() }
  expect(await withoutKeys(() => errorCodeOf(complete(request)))).toBe('starting')
  expect(await complete(request)).toMatchObject({ tokenType: 'Bearer' })
})

test('a refresh token stays good, and its session open', async () => {
  const { refreshToken } = await signIn(credentials, origin)
  expect(await withoutKeys(() => errorCodeOf(refresh({ refreshToken })))).toBe('starting')
  expect(await refresh({ refreshToken })).toMatchObject({ tokenType: 'Bearer' })
})

test('nobody is signed in', async () => {
  const { accessToken } = await signIn(credentials, origin)
  const caller = await verifyAccessToken(accessToken)
  const { items: before } = await list(caller)
  expect(await withoutKeys(() => errorCodeOf(signIn(credentials, origin)))).toBe('starting')
  expect((await list(caller)).items).toHaveLength(before.length)
})
