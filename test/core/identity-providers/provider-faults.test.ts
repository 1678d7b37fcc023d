import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import * as Identity from '@platform/core/identity-providers/manage'
import { configure } from '@platform/core/identity-providers/configure'
import { findProvider } from '@platform/core/identity-providers/provider'
import { isOrphanedSecret } from '@platform/core/identity-providers/orphaned-secrets'
import { sweep } from '@platform/core/background/sweep'
import { expect, test } from 'vitest'
import { beforeCommand } from '../../support/store-calls.ts'
import { newCaller, errorCodeOf } from '../../support/fixtures.ts'
import { crashAtCall, oidc, secretInUse, secretNames } from '../support/identity.ts'
import { advanceClock } from '../support/notifications.ts'

const admin = () => newCaller(undefined, 'PlatformAdmin')
const changed = { ...oidc, clientSecret: 'second secret' }

/** What is left of secrets that nothing uses, once the sweep has come. */
async function notes(): Promise<unknown[]> {
  const shards = Array.from({ length: keys.dueShards }, (_, shard) =>
    query({ index: 'due', pk: keys.duePartition(shard) }),
  )
  const due = (await Promise.all(shards)).flatMap(({ items }) => items)
  return due.filter(isOrphanedSecret)
}

async function expectNoRemains(id: string): Promise<void> {
  advanceClock(11 * 60_000)
  await sweep()
  const row = await findProvider(id)
  expect(await secretNames(id)).toEqual(row === undefined ? [] : [row.secretName])
  expect(await notes()).toEqual([])
}

const moments = ['before', 'after'] as const

test.each(moments)(
  'a provider is added whole or not at all, wherever the process ends: %s a call is answered',
  async (when) => {
    let isCut = true
    let cuts = 0
    for (let n = 1; isCut; n++) {
      const caller = await admin()
      isCut = await crashAtCall(n, when, () => configure(caller, oidc))
      const [provider] = (await Identity.list(caller)).items
      if (provider === undefined) {
        // Nothing stands in the way of the next try.
        const { id } = await configure(caller, oidc)
        await expectNoRemains(id)
      } else {
        expect(await secretInUse(provider.id)).toBe('first secret')
        await expectNoRemains(provider.id)
      }
      expect(await get(keys.identityProviderCount(caller.organisationId))).toMatchObject({ count: 1 })
      cuts += Number(isCut)
    }
    expect(cuts).toBeGreaterThanOrEqual(5)
  },
)

test.each(moments)(
  'a provider whose secret is changed works with the old or the new one, wherever the process ends: %s a call is answered',
  async (when) => {
    const seen = new Set<unknown>()
    let isCut = true
    for (let n = 1; isCut; n++) {
      const caller = await admin()
      const { id } = await configure(caller, oidc)
      isCut = await crashAtCall(n, when, () => configure(caller, changed))
      const secret = await secretInUse(id)
      expect(['first secret', 'second secret']).toContain(secret)
      seen.add(secret)
      await expectNoRemains(id)
      expect(await secretInUse(id)).toBe(secret)
    }
    expect(seen.size).toBe(2)
  },
)

test.each(moments)(
  'a provider is removed with its secret, wherever the process ends: %s a call is answered',
  async (when) => {
    let isCut = true
    const left = new Set<boolean>()
    for (let n = 1; isCut; n++) {
      const caller = await admin()
      const { id } = await configure(caller, oidc)
      isCut = await crashAtCall(n, when, () => Identity.remove(caller, id))
      const isLeft = (await findProvider(id)) !== undefined
      expect(await secretInUse(id)).toBe(isLeft ? 'first secret' : undefined)
      left.add(isLeft)
      await expectNoRemains(id)
      expect(await get(keys.identityProviderCount(caller.organisationId))).toMatchObject({ count: Number(isLeft) })
    }
    expect(left.size).toBe(2)
  },
)

test('the sweep leaves a secret alone that was written just now', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  await crashAtCall(5, 'before', () => configure(caller, changed))
  expect(await secretNames(id)).toHaveLength(2)
  await sweep()
  expect(await secretNames(id)).toHaveLength(2)
  await expectNoRemains(id)
})

test('whoever is so late that the sweep has taken the new secret changes nothing', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  const hasSwept = beforeCommand(
    /TransactWrite/,
    async () => {
      advanceClock(11 * 60_000)
      await sweep()
    },
    2,
  )
  expect(await errorCodeOf(configure(caller, changed))).toBe('conflict')
  expect(hasSwept()).toBe(true)
  expect(await secretInUse(id)).toBe('first secret')
  await expectNoRemains(id)
})
