import { expect } from 'vitest'
import { expectStatus, describeResponse } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Operation } from './support/document.ts'
import { sampled } from '../support/long.ts'
import { test } from './support/test.ts'

const readPermissions = ['clusters:read', 'jobs:read', 'modules:read']
const operatorPermissions = [...readPermissions, 'jobs:write']
const clusterAdminPermissions = [...operatorPermissions, 'clusters:write', 'clusters:admin']

/** The permissions of each role. PlatformAdmin has all. */
const permissionsByRole: Record<string, string[]> = {
  OrgAdmin: [...clusterAdminPermissions, 'users:admin', 'audit:read'],
  ClusterAdmin: clusterAdminPermissions,
  Operator: operatorPermissions,
  Viewer: readPermissions,
  Auditor: [...readPermissions, 'audit:read'],
}

/** Sends a request that fails after the permission check. */
const sendRequest = (client: Client, { method, template, requestBody }: Operation) =>
  client.send(method, template.replaceAll(/\{\w+\}/g, 'nothing'), {
    ...(requestBody && { json: {} }),
  })

test('gives every role its specified permissions, alone and combined', async ({ platform, admin }) => {
  const sorted = async (...roles: string[]) => {
    const { client } = await platform.newUser(...roles)
    return expectStatus(await client.get('/api/v1/auth/me'), 200).permissions.toSorted()
  }
  for (const [role, permissions] of Object.entries(permissionsByRole))
    expect(await sorted(role), role).toEqual(permissions.toSorted())
  const both = new Set([...operatorPermissions, ...(permissionsByRole['Auditor'] ?? [])])
  expect(await sorted('Operator', 'Auditor')).toEqual([...both].toSorted())
  const { permissions } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  for (const permission of [...(permissionsByRole['OrgAdmin'] ?? []), 'platform:admin']) {
    expect(permissions).toContain(permission)
  }
})

test('rejects operations that the role does not permit and names the permission', async ({ platform }) => {
  const guarded = platform.contract.operations.filter((operation) => operation['x-permission'] !== undefined)
  expect(guarded.length, `${guarded.length} operations name a permission`).toBeGreaterThan(20)
  for (const [role, permissions] of sampled(Object.entries(permissionsByRole))) {
    const { client } = await platform.newUser(role)
    for (const operation of guarded) {
      const permission = operation['x-permission'] ?? ''
      const response = await sendRequest(client, operation)
      if (permissions.includes(permission))
        expect(response.body?.error, `${role}: ${describeResponse(response)}`).not.toBe('forbidden')
      else expect(expectStatus(response, 403, 'forbidden').requiredPermission).toBe(permission)
    }
  }
})
