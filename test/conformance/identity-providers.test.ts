import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/platform/identity/providers'
const secret = 'a secret that is never returned'

/** Returns a provider for a unique tenant. The provider is disabled, so that sign-in pages do not show it. */
const newTenant = () => ({
  type: 'CloudDirectory',
  tenantId: randomUUID(),
  clientId: 'platform',
  clientSecret: secret,
  displayName: 'conformance',
  enabled: false,
})

async function newProvider(platform: Platform, request: object = newTenant()): Promise<any> {
  const admin = await platform.admin
  const provider = expectStatus(await admin.post(path, request), 201)
  platform.removeLater(admin, `${path}/${provider.id}`)
  return provider
}

const findListed = async (platform: Platform, id: string): Promise<any> => {
  const { items } = expectStatus(await (await platform.admin).get(path), 200)
  return items.find((each: any) => each.id === id)
}

test('adds, lists, changes and removes a provider without returning its secret', async ({ platform, admin }) => {
  const request = newTenant()
  const provider = await newProvider(platform, request)
  expect(provider.id).toMatch(/^idp_/)
  expect([provider.type, provider.status, provider.enabled]).toEqual(['CloudDirectory', 'Disabled', false])
  expect(provider).not.toHaveProperty('clientSecret')
  const { clientSecret: _, ...withoutSecret } = request
  const roleMappings = [{ group: 'operators', role: 'Operator' }]
  const changedProvider = expectStatus(
    await admin.post(path, { ...withoutSecret, roleMappings, defaultRole: 'Auditor' }),
    201,
  )
  expect([changedProvider.id, changedProvider.roleMappings, changedProvider.defaultRole]).toEqual([
    provider.id,
    roleMappings,
    'Auditor',
  ])
  expect(changedProvider.createdAt).toBe(provider.createdAt)
  await waitFor(
    'the change is listed',
    async () => expect(await findListed(platform, provider.id)).toEqual(changedProvider) ?? true,
  )
  expect((await admin.get(path)).text).not.toContain(secret)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 204)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 404, 'identity_provider_not_found')
  expect(await findListed(platform, provider.id)).toBe(undefined)
})
