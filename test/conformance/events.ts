import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import { eventSchemas } from './support/events.ts'
import type { Journeys } from './support/platform.ts'

/** The events of D37 about what the platform does by now. */
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

export const events: Journeys = {
  'the catalog names every event once, and says what it is': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const { items } = answered(await client.get('/api/v1/events/catalog'), 200)
    const types: string[] = items.map(({ type }: any) => type)
    assert.equal(new Set(types).size, types.length)
    for (const name of promised) assert.ok(types.includes(`platform.${name}`), name)
    for (const { type, description } of items) {
      assert.match(type, /^platform(?:\.[a-z_]+){2}$/)
      assert.match(description, /\.$/)
    }
  },

  'the schema of every event compiles, and tells its data from others': async (platform) => {
    const schemas = await eventSchemas(platform)
    assert.ok(schemas.size > 0)
    for (const [type, validate] of schemas) {
      for (const wrong of [null, [], 'text', {}]) assert.equal(validate(wrong), false, type)
    }
    const registered = schemas.get('platform.cluster.registered')
    const good = { clusterId: 'clus_00000000000000000000000000', name: 'berlin-1', type: 'Hypervisor' }
    assert.equal(registered?.(good), true)
    // A later release may add members.
    assert.equal(registered?.({ ...good, another: 1 }), true)
    assert.equal(registered?.({ ...good, clusterId: 'berlin-1' }), false)
  },
}
