import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import type { TestUser } from './support/person.ts'
import { waitFor } from '../support/wait-for.ts'

const sessionsPath = '/api/v1/users/me/sessions'
const passwordPath = '/api/v1/users/me/password'

const refresh = (platform: Platform, { refreshToken }: any) =>
  platform.anonymous.post('/api/v1/auth/refresh', { refreshToken })

const isDead = async (platform: Platform, tokens: any) =>
  expectStatus(await refresh(platform, tokens), 401, 'invalid_refresh_token')

/** Waits for a number of open sessions: lists may lag behind writes. */
const sessionsOf = ({ client }: TestUser, count: number): Promise<any[]> =>
  waitFor(`${count} sessions are listed`, async () => {
    const { items } = expectStatus(await client.get(sessionsPath), 200)
    return items.length === count && items
  })

test('lists sessions, newest first, and marks the current one', async ({ platform }) => {
  const person = await platform.newPerson('Viewer')
  await platform.signIn(person)
  const [newest, oldest] = await sessionsOf(person, 2)
  expect([newest.isCurrent, oldest.isCurrent]).toEqual([false, true])
  expect(Date.parse(newest.createdAt)).toBeGreaterThanOrEqual(Date.parse(oldest.createdAt))
  for (const { address } of [newest, oldest]) expect(address).toMatch(/^[0-9a-f.:]+$/)
})

test('ends one session and keeps the others', async ({ platform }) => {
  const person = await platform.newPerson('Viewer')
  const other = await platform.signIn(person)
  const ended = (await sessionsOf(person, 2)).find(({ isCurrent }) => !isCurrent)
  expectStatus(await person.client.delete(`${sessionsPath}/${ended.id}`), 204)
  await isDead(platform, other)
  expectStatus(await person.client.delete(`${sessionsPath}/${ended.id}`), 404, 'session_not_found')
  await sessionsOf(person, 1)
  expectStatus(await refresh(platform, person.tokens), 200)
})

test('lets an administrator end all sessions of a user', async ({ platform, admin }) => {
  const person = await platform.newPerson('Viewer')
  const other = await platform.signIn(person)
  expectStatus(await admin.delete(`/api/v1/users/${person.id}/sessions`), 204)
  for (const tokens of [person.tokens, other]) await isDead(platform, tokens)
  await platform.signIn(person)
})

test('ends all other sessions when the password changes', async ({ platform }) => {
  const person = await platform.newPerson('Viewer')
  const { username, password: currentPassword } = person
  const other = await platform.signIn(person)
  const newPassword = `${currentPassword} and more`
  expectStatus(await person.client.put(passwordPath, { currentPassword, newPassword }), 204)
  await isDead(platform, other)
  expectStatus(await refresh(platform, person.tokens), 200)
  expect((await sessionsOf(person, 1))[0].isCurrent).toBe(true)
  const old = { username, password: currentPassword }
  expectStatus(await platform.anonymous.post('/api/v1/auth/login', old), 401, 'invalid_credentials')
  await platform.signIn({ username, password: newPassword })
})

test('changes a password only with the current one and a valid new one', async ({ platform }) => {
  const person = await platform.newPerson('Viewer')
  const other = await platform.signIn(person)
  const { client, password: currentPassword } = person
  const wrong = { currentPassword: `${currentPassword}.`, newPassword: 'a longer sentence' }
  expectStatus(await client.put(passwordPath, wrong), 401, 'invalid_credentials')
  const short = { currentPassword, newPassword: '7 chars' }
  expect(invalidFields(await client.put(passwordPath, short))).toEqual(['body /newPassword'])
  expectStatus(await refresh(platform, other), 200)
  await platform.signIn(person)
})
