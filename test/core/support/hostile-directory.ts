// Imported first: it sets the addresses that the platform may reach, which core reads when it is imported.
import { entryOf, hostile, inTls, message, onRequest, ownCertificates, result } from './directories.ts'
import { type Socket } from 'node:net'
import { type Caller } from '@platform/core/caller'
import { query } from '@platform/core/db/table'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { usersOf } from '@platform/core/accounts/user'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { missingPrograms } from '../../support/installed-programs.ts'
import * as fixture from '../../support/fixtures.ts'
import { type Certificates } from '../../support/slapd.ts'
import { storeProvider, removeAllProviders } from './providers.ts'

/** A platform whose identity provider is a directory with one user, Ada; tests change its responses. */

/** The reason for skipping tests; empty if they run. */
export const lack = missingPrograms('openssl')

/** Set before the tests run. The platform trusts the `own` certificates only. */
export interface Fixtures {
  platform: fixture.SignedInUser
  caller: Caller
  own: Certificates
  others: Certificates
}
export const fixtures = {} as Fixtures

beforeAll(async () => {
  fixtures.platform = await fixture.setUpPlatform()
  fixtures.caller = fixtures.platform.caller
  if (lack === '') Object.assign(fixtures, { own: await ownCertificates(), others: await ownCertificates() })
})
beforeEach(() => fixture.advanceToNextMinute())
afterEach(() => removeAllProviders())

export const settingsOf = (scheme: 'ldap' | 'ldaps'): ProviderSettings => ({
  url: `${scheme}://localhost:${hostile.port}`,
  bindDn: 'cn=service',
  userSearchBase: 'ou=people',
  groupSearchBase: 'ou=groups',
  caCertificate: fixtures.own.ca,
})
export const directory = (scheme: 'ldap' | 'ldaps' = 'ldaps') => {
  const fields = { type: 'LDAP', settings: settingsOf(scheme) } as const
  return storeProvider(fixtures.caller.organisationId, fields, { bindPassword: 'service' })
}

const countUsers = async () => (await query({ pk: usersOf(fixtures.caller.organisationId).pk })).items.length

/** Signs in and returns the error code. Expects a rejected sign-in to create no user. */
export async function outcome(username = 'ada', secret = 'a password'): Promise<string> {
  const before = await countUsers()
  const code = await fixture.errorCodeOf(signIn({ username, password: secret }, fixture.newOrigin()))
  if (code !== 'no error') expect(await countUsers()).toBe(before)
  return code
}

export const [bind, search] = [0x60, 0x63]
export const bindDone = (id: number, code = 0) => message(id, result(0x61, code))
export const searchDone = (id: number, code = 0) => message(id, result(0x65, code))
export const ada = entryOf('uid=ada,ou=people', { uid: 'ada', entryUUID: 'uuid of ada' })

/** Sends the valid response to a request. */
function respond(socket: Socket, id: number, operation: number, bytes: Buffer): void {
  if (operation === bind) socket.write(bindDone(id))
  const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
  if (operation === search) socket.write(Buffer.concat([...(isForUser ? [message(id, ada)] : []), searchDone(id)]))
}

/** Handles a request of the client; returns true to suppress the valid response. */
export type Answer = (socket: Socket, id: number, operation: number, bytes: Buffer) => boolean | void
export function respondWith(answer: Answer): void {
  hostile.behave = (plain) => {
    const socket = inTls(plain, fixtures.own)
    onRequest(socket, (id, operation, bytes) => {
      if (answer(socket, id, operation, bytes) !== true) respond(socket, id, operation, bytes)
    })
  }
}

/** Handles the n-th request of a kind. */
export const at =
  (operation: number, nth: number, act: Answer): (() => Answer) =>
  () => {
    let count = 0
    return (socket, id, received, bytes) => {
      if (received !== operation || ++count !== nth) return false
      act(socket, id, received, bytes)
      return true
    }
  }
export const writing =
  (...parts: ((id: number) => Uint8Array)[]): Answer =>
  (socket, id) => {
    socket.write(Buffer.concat(parts.map((part) => part(id))))
  }
export const startTlsAccepted = message(1, result(0x78, 0))

/** Responds to StartTLS with these bytes, upgrades the connection, and then sends valid responses. */
export function acceptStartTls(response: Uint8Array): void {
  hostile.behave = (plain) => {
    plain.once('data', () => {
      plain.write(response)
      const socket = inTls(plain, fixtures.own)
      onRequest(socket, (id, operation, bytes) => respond(socket, id, operation, bytes))
    })
  }
}
