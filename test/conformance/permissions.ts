import assert from 'node:assert/strict'
import { answered, show } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Operation } from './support/document.ts'
import type { Journeys } from './support/platform.ts'

const reads = ['clusters:read', 'jobs:read', 'modules:read']
const operates = [...reads, 'jobs:write']
const managesClusters = [...operates, 'clusters:write', 'clusters:admin']

/** What a role may do: the table of D14. PlatformAdmin may do everything. */
const rights: Record<string, string[]> = {
  OrgAdmin: [...managesClusters, 'users:admin', 'audit:read'],
  ClusterAdmin: managesClusters,
  Operator: operates,
  Viewer: reads,
  Auditor: [...reads, 'audit:read'],
}

/** Asks for something that cannot be: whoever may ask hears that, and whoever may not hears 403 before. */
const ask = (client: Client, { method, template, requestBody }: Operation) =>
  client.send(method, template.replaceAll(/\{\w+\}/g, 'nothing'), {
    ...(requestBody && { json: {} }),
  })

export const permissions: Journeys = {
  'every role holds the permissions of the specification, alone and together': async (platform) => {
    const sorted = async (...roles: string[]) => {
      const { client } = await platform.newPerson(...roles)
      return answered(await client.get('/api/v1/auth/me'), 200).permissions.toSorted()
    }
    for (const [role, held] of Object.entries(rights)) assert.deepEqual(await sorted(role), held.toSorted(), role)
    const both = new Set([...operates, ...(rights['Auditor'] ?? [])])
    assert.deepEqual(await sorted('Operator', 'Auditor'), [...both].toSorted())
    const admin = answered(await (await platform.admin).get('/api/v1/auth/me'), 200)
    for (const permission of [...(rights['OrgAdmin'] ?? []), 'platform:admin']) {
      assert.ok(admin.permissions.includes(permission), permission)
    }
  },

  'every operation is refused to every role that lacks its permission, which the answer names': async (platform) => {
    const guarded = platform.contract.operations.filter((operation) => operation['x-permission'] !== undefined)
    assert.ok(guarded.length > 20, `${guarded.length} operations name a permission`)
    for (const [role, held] of Object.entries(rights)) {
      const { client } = await platform.newPerson(role)
      for (const operation of guarded) {
        const permission = operation['x-permission'] ?? ''
        const answer = await ask(client, operation)
        if (held.includes(permission)) assert.notEqual(answer.body?.error, 'forbidden', `${role}: ${show(answer)}`)
        else assert.equal(answered(answer, 403, 'forbidden').requiredPermission, permission)
      }
    }
  },

  'what needs no permission is open to every role': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const open = platform.contract.operations.filter(
      ({ security = [], ...operation }) => 'bearer' in (security[0] ?? {}) && operation['x-permission'] === undefined,
    )
    for (const operation of open) {
      const answer = await ask(client, operation)
      assert.notEqual(answer.status, 403, show(answer))
    }
  },

  'a permission is asked for before the request is looked at': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const { id } = await platform.newCluster()
    answered(await client.post('/api/v1/clusters', { name: 7 }), 403, 'forbidden')
    answered(await client.send('POST', '/api/v1/jobs/batch', { body: '{' }), 403, 'forbidden')
    answered(await client.delete(`/api/v1/clusters/${id}`), 403, 'forbidden')
    answered(await client.delete('/api/v1/clusters/nothing'), 403, 'forbidden')
    assert.equal((await platform.cluster(id)).id, id)
  },
}
