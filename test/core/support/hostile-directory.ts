// Imported first: it sets the addresses that the platform may reach, which core reads when it is imported.
import {
  ber,
  canary,
  entryOf,
  hostile,
  inTls,
  message,
  onRequest,
  ownCertificates,
  references,
  result,
} from './directories.ts'
import { randomBytes } from 'node:crypto'
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
  (socket, id) =>
    void socket.write(Buffer.concat(parts.map((part) => part(id))))
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

export const tiny = (count: number) => (id: number) =>
  Buffer.concat(Array<Buffer>(count).fill(message(id, references())))

/** Writes this response to the n-th request of a kind, and valid responses to others. */
const answers = (operation: number, nth: number, ...parts: ((id: number) => Uint8Array)[]): (() => Answer) =>
  at(operation, nth, writing(...parts))

/** Writes these bytes as the response to the first bind. */
const answersBytes = (bytes: Uint8Array) => answers(bind, 1, () => bytes)

/** Writes these bytes to the first search again and again. */
const answersEndlessly = (bytesOf: (id: number) => Uint8Array) =>
  at(search, 1, (socket, id) => {
    const bytes = bytesOf(id)
    const writeMore = () => void (socket.destroyed || socket.write(bytes, writeMore))
    writeMore()
  })

/** Returns these entries for the first search. */
const finds = (...entries: Buffer[]) =>
  answers(search, 1, ...entries.map((entry) => (id: number) => message(id, entry)), (id) => searchDone(id))

/** An entry whose set of values is longer than the message. */
const overlongSet = ber(
  0x64,
  ber(4, Buffer.from('uid=ada,ou=people')),
  ber(0x30, ber(0x30, ber(4, Buffer.from('uid')), Buffer.from('318400ffffff', 'hex'))),
)
const referral = result(0x61, 10, ber(0xa3, Buffer.from('ldap://x')))
const withoutCode = Buffer.from('6100', 'hex')

/** Responses of a directory that cannot be used. */
export const unreachable: [string, () => Answer][] = [
  ['sends no response', () => () => true],
  ['closes the connection at the first request', at(bind, 1, (socket) => void socket.end())],
  ['resets the connection at the search', at(search, 1, (socket) => void socket.destroy())],
  ['resets the connection at the bind of the user', at(bind, 2, (socket) => void socket.destroy())],
  ['responds with HTTP', answersBytes(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))],
  ['responds with random bytes', answersBytes(randomBytes(5000))],
  ['responds with zeros', answersBytes(Buffer.alloc(5000))],
  ['announces a message of 4 GB', answersBytes(Buffer.from('3084ffffffff', 'hex'))],
  ['sends an indefinite length', answersBytes(Buffer.from('30800201', 'hex'))],
  ['omits the code of a bind', answers(bind, 1, (id) => message(id, withoutCode))],
  ['omits the code of the bind of the user', answers(bind, 2, (id) => message(id, withoutCode))],
  ['sends an empty code', answers(bind, 2, (id) => message(id, ber(0x61, ber(10), ber(4), ber(4))))],
  ['responds to the bind of the user with an entry', answers(bind, 2, (id) => message(id, ada))],
  ['truncates the response', answers(bind, 2, (id) => bindDone(id).subarray(0, 6))],
  ['responds to another message id', answers(bind, 2, (id) => bindDone(id + 1))],
  ['responds to the search with a bind response', answers(search, 1, (id) => bindDone(id))],
  ['is busy', answers(bind, 2, (id) => bindDone(id, 51))],
  ['responds to the bind with a referral', answers(bind, 2, (id) => message(id, referral))],
  ['responds to the search with a referral', answers(search, 1, (id) => searchDone(id, 10))],
  ['sends a set that exceeds its message', answers(search, 1, (id) => message(id, overlongSet))],
  [
    'sends an entry of 10 MB',
    answers(search, 1, (id) => message(id, ber(0x64, ber(4, Buffer.alloc(10 * 1024 * 1024, 'x'))))),
  ],
  ['sends entries endlessly', answersEndlessly((id) => Buffer.concat(Array<Buffer>(200).fill(message(id, ada))))],
  ['sends references endlessly', answersEndlessly(tiny(9000))],
  ['sends an unsolicited notice of disconnection', answers(search, 1, () => message(0, result(0x78, 52)))],
  [
    'sends single bytes slowly',
    at(bind, 1, (socket) => {
      const timer = setInterval(() => socket.write('0'), 100)
      socket.on('close', () => clearInterval(timer))
    }),
  ],
]

/** Valid responses that reject the user. */
export const refusing: [string, () => Answer][] = [
  ['rejects the password', answers(bind, 2, (id) => bindDone(id, 49))],
  ['finds no entry', finds()],
  ['finds two entries', finds(ada, ada)],
  ['finds the entry of another user', finds(entryOf('uid=root,ou=people', { uid: 'root' }))],
  ['finds an entry without a DN', finds(entryOf('', { uid: 'ada' }))],
  ['finds an entry with the name of a SASL mechanism as its DN', finds(entryOf('EXTERNAL', { uid: 'ada' }))],
  ['finds only references', finds(references(`ldap://127.0.0.1:${canary.port}/`, `ldap://localhost:${hostile.port}/`))],
]
