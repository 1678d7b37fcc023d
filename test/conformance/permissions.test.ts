import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, show } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Operation } from './support/document.ts'

const reads = ['clusters:read', 'jobs:read', 'modules:read']
const operates = [...reads, 'jobs:write']
const managesClusters = [...operates, 'clusters:write', 'clusters:admin']

/** The permissions of each role. PlatformAdmin has all. */
const rights: Record<string, string[]> = {
  OrgAdmin: [...managesClusters, 'users:admin', 'audit:read'],
  ClusterAdmin: managesClusters,
  Operator: operates,
  Viewer: reads,
  Auditor: [...reads, 'audit:read'],
}

/** Sends a request that fails after the permission check. */
const ask = (client: Client, { method, template, requestBody }: Operation) =>
  client.send(method, template.replaceAll(/\{\w+\}/g, 'nothing'), {
    ...(requestBody && { json: {} }),
  })

test('gives every role its specified permissions, alone and combined', async ({ platform, admin }) => {
  const sorted = async (...roles: string[]) => {
    const { client } = await platform.newPerson(...roles)
    return expectStatus(await client.get('/api/v1/auth/me'), 200).permissions.toSorted()
  }
  for (const [role, held] of Object.entries(rights)) expect(await sorted(role), role).toEqual(held.toSorted())
  const both = new Set([...operates, ...(rights['Auditor'] ?? [])])
  expect(await sorted('Operator', 'Auditor')).toEqual([...both].toSorted())
  const { permissions } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  for (const permission of [...(rights['OrgAdmin'] ?? []), 'platform:admin']) {
    expect(permissions).toContain(permission)
  }
})

test('rejects operations that the role does not permit and names the permission', async ({ platform }) => {
  const guarded = platform.contract.operations.filter((operation) => operation['x-permission'] !== undefined)
  expect(guarded.length, `${guarded.length} operations name a permission`).toBeGreaterThan(20)
  for (const [role, held] of Object.entries(rights)) {
    const { client } = await platform.newPerson(role)
    for (const operation of guarded) {
      const permission = operation['x-permission'] ?? ''
      const answer = await ask(client, operation)
      if (held.includes(permission)) expect(answer.body?.error, `${role}: ${show(answer)}`).not.toBe('forbidden')
      else expect(expectStatus(answer, 403, 'forbidden').requiredPermission).toBe(permission)
    }
  }
})

test('permits operations without a required permission to every role', async ({ platform }) => {
  const { client } = await platform.newPerson('Viewer')
  const open = platform.contract.operations.filter(
    ({ security = [], ...operation }) => 'bearer' in (security[0] ?? {}) && operation['x-permission'] === undefined,
  )
  for (const operation of open) {
    const answer = await ask(client, operation)
    expect(answer.status, show(answer)).not.toBe(403)
  }
})

test('checks permissions before the request', async ({ platform }) => {
  const { client } = await platform.newPerson('Viewer')
  const { id } = await platform.newCluster()
  expectStatus(await client.post('/api/v1/clusters', { name: 7 }), 403, 'forbidden')
  expectStatus(await client.send('POST', '/api/v1/jobs/batch', { body: '{' }), 403, 'forbidden')
  expectStatus(await client.delete(`/api/v1/clusters/${id}`), 403, 'forbidden')
  expectStatus(await client.delete('/api/v1/clusters/nothing'), 403, 'forbidden')
  expect((await platform.cluster(id)).id).toBe(id)
})
