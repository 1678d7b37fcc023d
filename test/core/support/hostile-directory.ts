// First: it sets what the platform may reach, which core reads when it is imported.
import { entryOf, hostile, inTls, message, onRequest, ownCertificates, result } from './directories.ts'
import { type Socket } from 'node:net'
import { type Caller } from '@platform/core/caller'
import { query } from '@platform/core/db/table'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { usersOf } from '@platform/core/accounts/user'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { missingPrograms } from '../../support/installed-programs.ts'
import {
  advanceToNextMinute,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  newOrigin,
} from '../../support/fixtures.ts'
import { type Certificates } from '../../support/slapd.ts'
import { storeProvider, removeAllProviders } from './providers.ts'

/** A directory that knows Ada and is otherwise what a test makes of it; and a platform that has it for a provider. */

/** Why tests are skipped; empty: they are not. */
export const lack = missingPrograms('openssl')

/** What there is once the tests run: whom the platform trusts, and others. */
export interface Fixtures {
  platform: SignedInUser
  caller: Caller
  own: Certificates
  others: Certificates
}
export const fixtures = {} as Fixtures

beforeAll(async () => {
  fixtures.platform = await setUpPlatform()
  fixtures.caller = fixtures.platform.caller
  if (lack === '') Object.assign(fixtures, { own: await ownCertificates(), others: await ownCertificates() })
})
beforeEach(() => advanceToNextMinute())
afterEach(() => removeAllProviders())

export const settingsOf = (scheme: 'ldap' | 'ldaps'): ProviderSettings => ({
  url: `${scheme}://localhost:${hostile.port}`,
  bindDn: 'cn=service',
  userSearchBase: 'ou=people',
  groupSearchBase: 'ou=groups',
  caCertificate: fixtures.own.ca,
})
export const directory = (scheme: 'ldap' | 'ldaps' = 'ldaps') =>
  storeProvider(
    fixtures.caller.organisationId,
    { type: 'LDAP', settings: settingsOf(scheme) },
    { bindPassword: 'service' },
  )

const count = async () => (await query({ pk: usersOf(fixtures.caller.organisationId).pk })).items.length

/** What a sign-in is answered, and how many users there are more. */
export async function outcome(username = 'ada', secret = 'a password'): Promise<string> {
  const before = await count()
  const refusal = await errorCodeOf(signIn({ username, password: secret }, newOrigin()))
  if (refusal !== 'no error') expect(await count()).toBe(before)
  return refusal
}

export const [bind, search] = [0x60, 0x63]
export const bindDone = (id: number, code = 0) => message(id, result(0x61, code))
export const searchDone = (id: number, code = 0) => message(id, result(0x65, code))
export const ada = entryOf('uid=ada,ou=people', { uid: 'ada', entryUUID: 'uuid of ada' })

/** A directory that knows Ada; a test says what it answers in another way. */
export type Answer = (socket: Socket, id: number, operation: number, bytes: Buffer) => boolean | void
export function respondWith(answer: Answer): void {
  hostile.behave = (plain) => {
    const socket = inTls(plain, fixtures.own)
    onRequest(socket, (id, operation, bytes) => {
      if (answer(socket, id, operation, bytes) === true) return
      if (operation === bind) socket.write(bindDone(id))
      const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
      if (operation === search) socket.write(Buffer.concat([...(isForUser ? [message(id, ada)] : []), searchDone(id)]))
    })
  }
}

export const at = (wanted: number, nth: number, act: Answer): (() => Answer) => {
  return () => {
    let seen = 0
    return (socket, id, operation, bytes) => {
      if (operation !== wanted || ++seen !== nth) return false
      act(socket, id, operation, bytes)
      return true
    }
  }
}
export const writing =
  (...parts: ((id: number) => Uint8Array)[]): Answer =>
  (socket, id) => {
    socket.write(Buffer.concat(parts.map((part) => part(id))))
  }
export const startTlsAccepted = message(1, result(0x78, 0))

/** Agrees to StartTLS with these bytes, goes on in TLS, and then answers as it should. */
export function acceptStartTls(answer: Uint8Array): void {
  hostile.behave = (plain) => {
    plain.once('data', () => {
      plain.write(answer)
      const socket = inTls(plain, fixtures.own)
      onRequest(socket, (id, operation, bytes) => {
        const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
        const found = operation === search && isForUser ? [message(id, ada)] : []
        socket.write(Buffer.concat([...found, operation === bind ? bindDone(id) : searchDone(id)]))
      })
    })
  }
}
