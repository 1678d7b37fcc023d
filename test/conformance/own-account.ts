import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import type { Person } from './support/person.ts'
import { until } from './support/until.ts'

const sessionsPath = '/api/v1/users/me/sessions'
const passwordPath = '/api/v1/users/me/password'

const refresh = (platform: Platform, { refreshToken }: any) =>
  platform.anonymous.post('/api/v1/auth/refresh', { refreshToken })

const isDead = async (platform: Platform, tokens: any) =>
  answered(await refresh(platform, tokens), 401, 'invalid_refresh_token')

/** The open sessions of a user, once there are as many as there should be: lists may lag behind by a moment. */
const sessionsOf = ({ client }: Person, count: number): Promise<any[]> =>
  until(`${count} sessions are listed`, async () => {
    const { items } = answered(await client.get(sessionsPath), 200)
    return items.length === count && items
  })

export const ownAccount: Journeys = {
  'sessions are listed, the newest first, and the current one is marked': async (platform) => {
    const person = await platform.newPerson('Viewer')
    await platform.signIn(person)
    const [newest, oldest] = await sessionsOf(person, 2)
    assert.deepEqual([newest.isCurrent, oldest.isCurrent], [false, true])
    assert.ok(Date.parse(newest.createdAt) >= Date.parse(oldest.createdAt))
    for (const { address } of [newest, oldest]) assert.match(address, /^[0-9a-f.:]+$/)
  },

  'a session that is ended is refreshed no more; the others go on': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const other = await platform.signIn(person)
    const ended = (await sessionsOf(person, 2)).find(({ isCurrent }) => !isCurrent)
    answered(await person.client.delete(`${sessionsPath}/${ended.id}`), 204)
    await isDead(platform, other)
    answered(await person.client.delete(`${sessionsPath}/${ended.id}`), 404, 'session_not_found')
    await sessionsOf(person, 1)
    answered(await refresh(platform, person.tokens), 200)
  },

  'an administrator ends all sessions of a user': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const other = await platform.signIn(person)
    answered(await (await platform.admin).delete(`/api/v1/users/${person.id}/sessions`), 204)
    for (const tokens of [person.tokens, other]) await isDead(platform, tokens)
    await platform.signIn(person)
  },

  'a changed password ends all other sessions, and the old one is worth nothing': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const { username, password: currentPassword } = person
    const other = await platform.signIn(person)
    const newPassword = `${currentPassword} and more`
    answered(await person.client.put(passwordPath, { currentPassword, newPassword }), 204)
    await isDead(platform, other)
    answered(await refresh(platform, person.tokens), 200)
    assert.equal((await sessionsOf(person, 1))[0].isCurrent, true)
    const old = { username, password: currentPassword }
    answered(await platform.anonymous.post('/api/v1/auth/login', old), 401, 'invalid_credentials')
    await platform.signIn({ username, password: newPassword })
  },

  'a password is changed only by who knows it, and for one that is long enough': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const other = await platform.signIn(person)
    const { client, password: currentPassword } = person
    const wrong = { currentPassword: `${currentPassword}.`, newPassword: 'a longer sentence' }
    answered(await client.put(passwordPath, wrong), 401, 'invalid_credentials')
    const short = { currentPassword, newPassword: '7 chars' }
    assert.deepEqual(refusedFields(await client.put(passwordPath, short)), ['body /newPassword'])
    answered(await refresh(platform, other), 200)
    await platform.signIn(person)
  },
}
