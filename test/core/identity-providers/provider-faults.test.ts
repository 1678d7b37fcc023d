import { sweep } from '@platform/core/background/sweep'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { configure } from '@platform/core/identity-providers/configure'
import * as Providers from '@platform/core/identity-providers/manage'
import { isOrphanedSecret } from '@platform/core/identity-providers/orphaned-secrets'
import { findProvider } from '@platform/core/identity-providers/provider'
import { expect, test } from 'vitest'
import { errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { beforeCommand, crashAtCall } from '../../support/store-calls.ts'
import { onSecretCall, oidc, secretInUse, secretNames } from '../support/identity.ts'
import { advanceClock } from '../../support/clock.ts'

const admin = () => newCaller(undefined, 'PlatformAdmin')
/** An administrator and a configured provider. */
async function configured() {
  const caller = await admin()
  return { caller, ...(await configure(caller, oidc)) }
}
const changed = { ...oidc, clientSecret: 'second secret' }

async function orphanMarkers() {
  const shards = Array.from({ length: keys.dueShards }, (_, shard) =>
    query({ index: 'due', pk: keys.duePartition(shard) }),
  )
  return (await Promise.all(shards)).flatMap(({ items }) => items).filter(isOrphanedSecret)
}

async function expectNoOrphans(id: string): Promise<void> {
  advanceClock(11 * 60_000)
  await sweep()
  const record = await findProvider(id)
  expect(await secretNames(id)).toEqual(record === undefined ? [] : [record.secretName])
  expect(await orphanMarkers()).toEqual([])
}

const providerCount = async ({ organisationId }: { organisationId: string }) =>
  (await get(keys.identityProviderCount(organisationId)))?.['count']

test.each(['before', 'after'] as const)(
  'adds a provider completely or not at all if a crash comes %s any call',
  async (when) => {
    let crashes = 0
    for (let [n, isCrashed] = [1, true]; isCrashed; n++) {
      const caller = await admin()
      isCrashed = await crashAtCall(n, when, () => configure(caller, oidc), onSecretCall)
      const [stored] = (await Providers.list(caller)).items
      const { id } = stored ?? (await configure(caller, oidc))
      expect(await secretInUse(id)).toBe('first secret')
      await expectNoOrphans(id)
      expect(await providerCount(caller)).toBe(1)
      crashes += Number(isCrashed)
    }
    expect(crashes).toBeGreaterThanOrEqual(5)
  },
)

test.each(['before', 'after'] as const)('keeps a usable secret if a change crashes %s any call', async (when) => {
  const secrets = new Set<string | undefined>()
  for (let [n, isCrashed] = [1, true]; isCrashed; n++) {
    const { caller, id } = await configured()
    isCrashed = await crashAtCall(n, when, () => configure(caller, changed), onSecretCall)
    const secret = await secretInUse(id)
    secrets.add(secret)
    await expectNoOrphans(id)
    expect(await secretInUse(id)).toBe(secret)
  }
  expect(secrets).toEqual(new Set(['first secret', 'second secret']))
})

test.each(['before', 'after'] as const)(
  'removes a provider with its secret if a crash comes %s any call',
  async (when) => {
    const outcomes = new Set<boolean>()
    for (let [n, isCrashed] = [1, true]; isCrashed; n++) {
      const { caller, id } = await configured()
      isCrashed = await crashAtCall(n, when, () => Providers.remove(caller, id), onSecretCall)
      const isStored = (await findProvider(id)) !== undefined
      expect(await secretInUse(id)).toBe(isStored ? 'first secret' : undefined)
      outcomes.add(isStored)
      await expectNoOrphans(id)
      expect(await providerCount(caller)).toBe(Number(isStored))
    }
    expect(outcomes.size).toBe(2)
  },
)

test('does not sweep a new secret', async () => {
  const { caller, id } = await configured()
  await crashAtCall(5, 'before', () => configure(caller, changed), onSecretCall)
  expect(await secretNames(id)).toHaveLength(2)
  await sweep()
  expect(await secretNames(id)).toHaveLength(2)
  await expectNoOrphans(id)
})

test('rejects a change whose new secret was swept', async () => {
  const { caller, id } = await configured()
  const sweepLater = async () => {
    advanceClock(11 * 60_000)
    await sweep()
  }
  const isSwept = beforeCommand(/TransactWrite/, sweepLater, 2)
  await expectError(configure(caller, changed), 'conflict')
  expect(isSwept()).toBe(true)
  expect(await secretInUse(id)).toBe('first secret')
  await expectNoOrphans(id)
})

test('removes a provider once among concurrent requests', async () => {
  const { caller, id } = await configured()
  const outcomes = await Promise.all([1, 2, 3].map(() => errorCodeOf(Providers.remove(caller, id))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
  await configure(caller, oidc)
  expect((await Providers.list(caller)).items).toHaveLength(1)
})

test('stores one provider with one secret among concurrent changes', async () => {
  const caller = await admin()
  const secrets = Array.from({ length: 8 }, (_, index) => `secret ${index}`)
  const providers = await Promise.all(secrets.map((clientSecret) => configure(caller, { ...oidc, clientSecret })))
  const [id = '', ...others] = new Set(providers.map((provider) => provider.id))
  expect(others).toEqual([])
  expect(secrets).toContain(await secretInUse(id))
  const record = await findProvider(id)
  expect(await secretNames(id)).toEqual([record?.secretName])
  expect(record?.revision).toBe(8)
})
