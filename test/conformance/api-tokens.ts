import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import type { Person } from './support/person.ts'
import { until } from './support/until.ts'

const path = '/api/v1/users/me/tokens'
const me = '/api/v1/auth/me'
/** The platform's clock is not this machine's. */
const clockSkewMs = 1000

/** Creates an API token of somebody; answers it with a client that uses it. */
async function newToken(platform: Platform, { client }: Person, rest: object = {}) {
  const token = answered(await client.post(path, { name: platform.newName(), ...rest }), 201)
  return { ...token, client: platform.anonymous.withToken(token.token) }
}

export const apiTokens: Journeys = {
  'an API token is shown once, and speaks for its user': async (platform) => {
    const person = await platform.newPerson('Operator')
    const { id, token, client, ...created } = await newToken(platform, person)
    assert.match(token, /^plat_[0-9a-z]+_\S+$/)
    assert.equal(created.lastUsedAt, null)
    const mine = answered(await person.client.get(me), 200)
    assert.deepEqual(answered(await client.get(me), 200), mine)
    assert.deepEqual(created.permissions.toSorted(), mine.permissions.toSorted())
    const list = await person.client.get(path)
    assert.deepEqual(
      answered(list, 200).items.map((item: any) => item.id),
      [id],
    )
    assert.ok(!list.text.includes(token))
  },

  'its use is remembered to the hour, whatever it is used for': async (platform) => {
    const person = await platform.newPerson('Viewer')
    for (const use of [me, '/api/v1/clusters', '/api/v1/events/catalog']) {
      const { id, client } = await newToken(platform, person)
      answered(await client.get(use), 200)
      const lastUsedAt = await until('the use is shown', async () => {
        const { items } = answered(await person.client.get(path), 200)
        return items.find((token: any) => token.id === id).lastUsedAt ?? undefined
      })
      assert.ok(Math.abs(Date.now() - Date.parse(lastUsedAt)) <= 2 * 3_600_000, lastUsedAt)
    }
  },

  'a token may do what it names, and no more': async (platform) => {
    const person = await platform.newPerson('ClusterAdmin')
    const { client } = await newToken(platform, person, { permissions: ['clusters:read'] })
    assert.deepEqual(answered(await client.get(me), 200).permissions, ['clusters:read'])
    answered(await client.get('/api/v1/clusters'), 200)
    const refused = answered(await client.post('/api/v1/clusters', {}), 403, 'forbidden')
    assert.equal(refused.requiredPermission, 'clusters:write')
    answered(await client.get('/api/v1/jobs'), 403, 'forbidden')
  },

  'a token may do no more than its user at that moment': async (platform) => {
    const person = await platform.newPerson('ClusterAdmin')
    const { client } = await newToken(platform, person)
    answered(await client.post('/api/v1/clusters', {}), 400, 'validation_failed')
    const demoted = { roles: ['Viewer'] }
    answered(await (await platform.admin).patch(`/api/v1/users/${person.id}`, demoted), 200)
    answered(await client.post('/api/v1/clusters', {}), 403, 'forbidden')
    answered(await client.get('/api/v1/clusters'), 200)
  },

  'a revoked token is refused from then on, and so is one of a removed user': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const [first, second] = [await newToken(platform, person), await newToken(platform, person)]
    for (const { client } of [first, second]) answered(await client.get(me), 200)
    answered(await person.client.delete(`${path}/${first.id}`), 204)
    answered(await first.client.get(me), 401, 'unauthenticated')
    answered(await person.client.delete(`${path}/${first.id}`), 404, 'token_not_found')
    answered(await second.client.get(me), 200)
    answered(await (await platform.admin).delete(`/api/v1/users/${person.id}`), 204)
    answered(await second.client.get(me), 401, 'unauthenticated')
  },

  'a token neither lists, creates nor revokes tokens': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const { id, client } = await newToken(platform, person)
    answered(await client.get(path), 403, 'forbidden')
    answered(await client.post(path, { name: 'another' }), 403, 'forbidden')
    answered(await client.delete(`${path}/${id}`), 403, 'forbidden')
    answered(await client.get(me), 200)
  },

  'a token outlives the session that made it, and a changed password': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const { client } = await newToken(platform, person)
    const { password: currentPassword } = person
    const change = { currentPassword, newPassword: `${currentPassword}.` }
    answered(await person.client.put('/api/v1/users/me/password', change), 204)
    answered(await person.client.post('/api/v1/auth/logout'), 204)
    answered(await client.get(me), 200)
  },

  'a session that has ended, or whose user is removed, makes no token': async (platform) => {
    const [left, removed] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
    answered(await left.client.post('/api/v1/auth/logout'), 204)
    answered(await (await platform.admin).delete(`/api/v1/users/${removed.id}`), 204)
    for (const { client } of [left, removed]) answered(await client.post(path, { name: 'x' }), 401, 'unauthenticated')
  },

  'an expired token is refused': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const expiresAt = new Date(Date.now() + 3000).toISOString()
    const token = await newToken(platform, person, { expiresAt })
    assert.equal(token.expiresAt, expiresAt)
    await until('the token expires', async () => (await token.client.get(me)).status === 401)
    answered(await token.client.get(me), 401, 'token_expired')
    assert.ok(Date.now() >= Date.parse(expiresAt) - clockSkewMs)
  },

  'what cannot be in a token is refused': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const wrong: [object, string[]][] = [
      [{}, ['body /name']],
      [{ name: '' }, ['body /name']],
      [{ name: 'x', expiresAt: 'tomorrow' }, ['body /expiresAt']],
      [{ name: 'x', expiresAt: '2020-01-01T00:00:00Z' }, ['body /expiresAt']],
      [{ name: 'x', permissions: ['root'] }, ['body /permissions/0']],
      [{ name: 'x', permissions: ['clusters:read', 'platform:admin'] }, ['body /permissions/1']],
    ]
    for (const [json, fields] of wrong) {
      assert.deepEqual(refusedFields(await person.client.post(path, json)), fields)
    }
  },

  'what is no API token is refused': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const { token, client } = await newToken(platform, person)
    const [, tokenId] = token.split('_')
    const { token: other } = await newToken(platform, person)
    const mixed = `plat_${tokenId}_${other.slice(other.indexOf('_', 5) + 1)}`
    const wrong = ['plat_', 'plat__', `plat_${tokenId}`, `plat_${tokenId}_`, `${token}x`, token.slice(0, -1), mixed]
    for (const text of wrong) {
      answered(await platform.anonymous.withToken(text).get(me), 401, 'unauthenticated')
    }
    answered(await client.get(me), 200)
  },
}
