import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'
import { eventSchemas } from './support/events.ts'

/** Events that every release emits. */
const promised = [
  'setup.completed',
  ...['created', 'signed_in', 'sign_in_failed', 'deleted'].map((verb) => `user.${verb}`),
  'session.reuse_detected',
  ...['registered', 'enrolled', 'status_changed', 'updated', 'deleted'].map((verb) => `cluster.${verb}`),
  'relay.replaced',
  ...['queued', 'started', 'completed', 'failed', 'cancelled'].map((verb) => `job.${verb}`),
  ...['accepted', 'finished'].map((verb) => `batch.${verb}`),
  ...['provider_configured', 'consent_received'].map((verb) => `identity.${verb}`),
  ...['available', 'started', 'completed', 'failed', 'rolled_back'].map((verb) => `update.${verb}`),
]

test('lists every event once with a description', async ({ platform }) => {
  const { client } = await platform.newPerson('Viewer')
  const { items } = expectStatus(await client.get('/api/v1/events/catalog'), 200)
  const types: string[] = items.map(({ type }: any) => type)
  expect(new Set(types).size).toBe(types.length)
  for (const name of promised) expect(types, name).toContain(`platform.${name}`)
  for (const { type, description } of items) {
    expect(type).toMatch(/^platform(?:\.[a-z_]+){2}$/)
    expect(description).toMatch(/\.$/)
  }
})

test('publishes schemas that compile and validate event data', async ({ platform }) => {
  const schemas = await eventSchemas(platform)
  expect(schemas.size).toBeGreaterThan(0)
  for (const [type, validate] of schemas) {
    for (const wrong of [null, [], 'text', {}]) expect(validate(wrong), type).toBe(false)
  }
  const registered = schemas.get('platform.cluster.registered')
  const good = { clusterId: 'clus_00000000000000000000000000', name: 'berlin-1', type: 'Hypervisor' }
  expect(registered?.(good)).toBe(true)
  // A later release may add members.
  expect(registered?.({ ...good, another: 1 })).toBe(true)
  expect(registered?.({ ...good, clusterId: 'berlin-1' })).toBe(false)
})
