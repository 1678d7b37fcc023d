import { expect } from 'vitest'
import { expectStatus, describeResponse } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Operation } from './support/document.ts'
import { test } from './support/test.ts'

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
      const response = await ask(client, operation)
      if (held.includes(permission))
        expect(response.body?.error, `${role}: ${describeResponse(response)}`).not.toBe('forbidden')
      else expect(expectStatus(response, 403, 'forbidden').requiredPermission).toBe(permission)
    }
  }
})
