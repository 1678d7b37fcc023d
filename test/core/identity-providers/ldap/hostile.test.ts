// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
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
} from '../../support/directories.ts'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { usersOf } from '@platform/core/accounts/user'
import type { Caller } from '@platform/core/caller'
import { query } from '@platform/core/db/table'
import { confirmEntry } from '@platform/core/identity-providers/ldap/confirm'
import { authenticate, clientOn } from '@platform/core/identity-providers/ldap/ldap'
import { connectDirectory, upgradeToTls } from '@platform/core/identity-providers/ldap/socket'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { LdapMessages } from '@platform/core/identity-providers/ldap/wire'
import type { ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  advanceToNextMinute,
  errorCodeOf,
  newOrigin,
  password,
  setUpPlatform,
  type SignedInUser,
} from '../../../support/fixtures.ts'
import { missingPrograms } from '../../../support/installed-programs.ts'
import { isLong, rounds } from '../../../support/long.ts'
import type { Certificates } from '../../../support/slapd.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { callerOfTokens, removeAllProviders, storeProvider } from '../../support/providers.ts'

/** The platform's identity provider is a directory with one user, Ada; tests change its responses. */

/** The reason for skipping tests; empty if they run. */
const skipReason = missingPrograms('openssl')

/** Set before the tests run. The platform trusts the `own` certificates only. */
interface Fixtures {
  platform: SignedInUser
  caller: Caller
  own: Certificates
  others: Certificates
}
const fixtures = {} as Fixtures

beforeAll(async () => {
  fixtures.platform = await setUpPlatform()
  fixtures.caller = fixtures.platform.caller
  if (skipReason === '') Object.assign(fixtures, { own: await ownCertificates(), others: await ownCertificates() })
})
beforeEach(() => advanceToNextMinute())
afterEach(() => removeAllProviders())

const settingsOf = (scheme: 'ldap' | 'ldaps'): ProviderSettings => ({
  url: `${scheme}://localhost:${hostile.port}`,
  bindDn: 'cn=service',
  userSearchBase: 'ou=people',
  groupSearchBase: 'ou=groups',
  caCertificate: fixtures.own.ca,
})
const directory = (scheme: 'ldap' | 'ldaps' = 'ldaps') => {
  const fields = { type: 'LDAP', settings: settingsOf(scheme) } as const
  return storeProvider(fixtures.caller.organisationId, fields, { bindPassword: 'service' })
}

const countUsers = async () => (await query({ pk: usersOf(fixtures.caller.organisationId).pk })).items.length

/** Signs in and returns the error code. Expects a rejected sign-in to create no user. */
async function trySignIn(username = 'ada', secret = 'a password'): Promise<string> {
  const countBefore = await countUsers()
  const code = await errorCodeOf(signIn({ username, password: secret }, newOrigin()))
  if (code !== 'no error') expect(await countUsers()).toBe(countBefore)
  return code
}

const [bind, search] = [0x60, 0x63]
const bindDone = (id: number, code = 0) => message(id, result(0x61, code))
const searchDone = (id: number, code = 0) => message(id, result(0x65, code))
const ada = entryOf('uid=ada,ou=people', { uid: 'ada', entryUUID: 'uuid of ada' })

function respond(socket: Socket, id: number, operation: number, bytes: Buffer): void {
  if (operation === bind) socket.write(bindDone(id))
  const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
  if (operation === search) socket.write(Buffer.concat([...(isForUser ? [message(id, ada)] : []), searchDone(id)]))
}

/** Handles a request of the client; returns true to suppress the valid response. */
type RequestHandler = (socket: Socket, id: number, operation: number, bytes: Buffer) => boolean | void
function respondWith(handle: RequestHandler): void {
  hostile.behave = (plain) => {
    const socket = inTls(plain, fixtures.own)
    onRequest(socket, (id, operation, bytes) => {
      if (handle(socket, id, operation, bytes) !== true) respond(socket, id, operation, bytes)
    })
  }
}

/** Handles the n-th request of a kind instead of sending the valid response. */
const onNth =
  (operation: number, nth: number, handle: RequestHandler): (() => RequestHandler) =>
  () => {
    let count = 0
    return (socket, id, receivedOperation, bytes) => {
      if (receivedOperation !== operation || ++count !== nth) return false
      handle(socket, id, receivedOperation, bytes)
      return true
    }
  }
const writing =
  (...parts: ((id: number) => Uint8Array)[]): RequestHandler =>
  (socket, id) =>
    void socket.write(Buffer.concat(parts.map((part) => part(id))))
const startTlsResponse = message(1, result(0x78, 0))

function acceptStartTls(response: Uint8Array): void {
  hostile.behave = (plain) => {
    plain.once('data', () => {
      plain.write(response)
      const socket = inTls(plain, fixtures.own)
      onRequest(socket, (id, operation, bytes) => respond(socket, id, operation, bytes))
    })
  }
}

const tiny = (count: number) => (id: number) => Buffer.concat(Array<Buffer>(count).fill(message(id, references())))

const sends = (operation: number, nth: number, ...parts: ((id: number) => Uint8Array)[]): (() => RequestHandler) =>
  onNth(operation, nth, writing(...parts))

const sendsBytes = (bytes: Uint8Array) => sends(bind, 1, () => bytes)

const sendsEndlessly = (bytesOf: (id: number) => Uint8Array) =>
  onNth(search, 1, (socket, id) => {
    const bytes = bytesOf(id)
    const writeMore = () => void (socket.destroyed || socket.write(bytes, writeMore))
    writeMore()
  })

const finds = (...entries: Buffer[]) =>
  sends(search, 1, ...entries.map((entry) => (id: number) => message(id, entry)), (id) => searchDone(id))

/** An entry whose set of values has a stated length beyond the end of the message. */
const overlongSet = ber(
  0x64,
  ber(4, Buffer.from('uid=ada,ou=people')),
  ber(0x30, ber(0x30, ber(4, Buffer.from('uid')), Buffer.from('318400ffffff', 'hex'))),
)
const referral = result(0x61, 10, ber(0xa3, Buffer.from('ldap://x')))
const withoutCode = Buffer.from('6100', 'hex')

const unreachableCases: [string, () => RequestHandler][] = [
  ['sends no response', () => () => true],
  ['closes the connection at the first request', onNth(bind, 1, (socket) => void socket.end())],
  ['resets the connection at the search', onNth(search, 1, (socket) => void socket.destroy())],
  ['resets the connection at the bind of the user', onNth(bind, 2, (socket) => void socket.destroy())],
  ['responds with HTTP', sendsBytes(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))],
  ['responds with random bytes', sendsBytes(randomBytes(5000))],
  ['responds with zeros', sendsBytes(Buffer.alloc(5000))],
  ['announces a message of 4 GB', sendsBytes(Buffer.from('3084ffffffff', 'hex'))],
  ['sends an indefinite length', sendsBytes(Buffer.from('30800201', 'hex'))],
  ['omits the code of a bind', sends(bind, 1, (id) => message(id, withoutCode))],
  ['omits the code of the bind of the user', sends(bind, 2, (id) => message(id, withoutCode))],
  ['sends an empty code', sends(bind, 2, (id) => message(id, ber(0x61, ber(10), ber(4), ber(4))))],
  ['responds to the bind of the user with an entry', sends(bind, 2, (id) => message(id, ada))],
  ['truncates the response', sends(bind, 2, (id) => bindDone(id).subarray(0, 6))],
  ['responds to another message id', sends(bind, 2, (id) => bindDone(id + 1))],
  ['responds to the search with a bind response', sends(search, 1, (id) => bindDone(id))],
  ['is busy', sends(bind, 2, (id) => bindDone(id, 51))],
  ['responds to the bind with a referral', sends(bind, 2, (id) => message(id, referral))],
  ['responds to the search with a referral', sends(search, 1, (id) => searchDone(id, 10))],
  ['sends a set that exceeds its message', sends(search, 1, (id) => message(id, overlongSet))],
  [
    'sends an entry of 10 MB',
    sends(search, 1, (id) => message(id, ber(0x64, ber(4, Buffer.alloc(10 * 1024 * 1024, 'x'))))),
  ],
  ['sends entries endlessly', sendsEndlessly((id) => Buffer.concat(Array<Buffer>(200).fill(message(id, ada))))],
  ['sends references endlessly', sendsEndlessly(tiny(9000))],
  ['sends an unsolicited notice of disconnection', sends(search, 1, () => message(0, result(0x78, 52)))],
  [
    'sends single bytes slowly',
    onNth(bind, 1, (socket) => {
      const timer = setInterval(() => socket.write('0'), 100)
      socket.on('close', () => clearInterval(timer))
    }),
  ],
]

const refusing: [string, () => RequestHandler][] = [
  ['rejects the password', sends(bind, 2, (id) => bindDone(id, 49))],
  ['finds no entry', finds()],
  ['finds two entries', finds(ada, ada)],
  ['finds the entry of another user', finds(entryOf('uid=root,ou=people', { uid: 'root' }))],
  ['finds an entry without a DN', finds(entryOf('', { uid: 'ada' }))],
  ['finds an entry with the name of a SASL mechanism as its DN', finds(entryOf('EXTERNAL', { uid: 'ada' }))],
  ['finds only references', finds(references(`ldap://127.0.0.1:${canary.port}/`, `ldap://localhost:${hostile.port}/`))],
]

const credentials = { username: 'ada', password: 'a password' }

describe.skipIf(skipReason !== '')(`hostile LDAP directories${skipReason}`, () => {
  test('signs in with valid responses, even if they arrive byte by byte', async () => {
    respondWith(() => undefined)
    await directory()
    const tokens = await signIn(credentials, newOrigin())
    expect(await callerOfTokens(tokens)).toMatchObject({ organisationId: fixtures.caller.organisationId })
    hostile.behave = (plain) => {
      const socket = inTls(plain, fixtures.own)
      onRequest(socket, (id, operation, bytes) => {
        const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
        const entries = operation === search && isForUser ? [message(id, ada)] : []
        const response = Buffer.concat([...entries, operation === bind ? bindDone(id) : searchDone(id)])
        for (const byte of response) socket.write(Buffer.from([byte]))
      })
    }
    expect(await trySignIn()).toBe('no error')
  })

  test.each(unreachableCases)('fails if a directory %s', async (_, newHandler) => {
    const deadline = new AbortController()
    const handle = newHandler()
    respondWith((...request) => {
      setTimeout(() => deadline.abort(), rounds(300, 800))
      return handle(...request)
    })
    await expect(authenticate(await directory(), credentials, deadline.signal)).rejects.toThrow()
    expect(hostile.connections.length).toBeGreaterThan(0)
  })

  test('searches for a local name like an unknown one after a wrong password, without sending it', async () => {
    const operations: number[] = []
    const receivedParts: Buffer[] = []
    respondWith((_socket, _id, operation, bytes) => {
      operations.push(operation)
      receivedParts.push(bytes)
    })
    await directory()
    for (const username of [fixtures.platform.username, 'unknown']) {
      expect(await trySignIn(username, 'a wrong password')).toBe('invalid_credentials')
      expect(operations.splice(0)).toEqual([bind, search])
    }
    expect(Buffer.concat(receivedParts).toString('latin1')).not.toContain('a wrong password')
  })

  test.each(refusing)('rejects the credentials if a directory %s', async (_, newHandler) => {
    respondWith(newHandler())
    await directory()
    expect(await trySignIn()).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
  })

  test('ignores search references', async () => {
    const reference = references(`ldap://127.0.0.1:${canary.port}/`)
    const parts = [(id: number) => message(id, reference), (id: number) => message(id, ada), tiny(2000), searchDone]
    respondWith(onNth(search, 1, writing(...parts.map((part) => (id: number) => part(id))))())
    await directory()
    expect(await trySignIn()).toBe('no error')
    expect(canary.connections).toHaveLength(0)
  })

  const opsDn = 'cn=ops,ou=groups'
  const roleMappings = [{ group: opsDn, role: 'Operator' as const }]
  const nested = (nestedGroups: ProviderSettings['nestedGroups']) =>
    storeProvider(
      fixtures.caller.organisationId,
      { type: 'LDAP', settings: { ...settingsOf('ldaps'), nestedGroups }, roleMappings },
      { bindPassword: 'service' },
    )

  test('lets Active Directory resolve nested groups', async () => {
    const filters: boolean[] = []
    respondWith((socket, id, operation, bytes) => {
      const isRootEntry = bytes.includes('supportedCapabilities')
      const isGroup = bytes.includes(opsDn)
      if (operation !== search || !(isRootEntry || isGroup)) return false
      if (isGroup) filters.push(bytes.includes('1.2.840.113556.1.4.1941') && bytes.includes('uid=ada,ou=people'))
      const entry = isGroup ? entryOf(opsDn, {}) : entryOf('', { supportedCapabilities: '1.2.840.113556.1.4.800' })
      socket.write(Buffer.concat([message(id, entry), searchDone(id)]))
      return true
    })
    const identity = await authenticate(await nested('matchingRule'), credentials, AbortSignal.timeout(5000))
    expect([identity?.groups, filters]).toEqual([[opsDn], [true]])
  })

  test.each([3, 4, 11, 50, 51])('treats result code %i of a group search as an incomplete list', async (code) => {
    for (const mode of ['none', 'recursive'] as const) {
      respondWith(sends(search, 2, (id) => Buffer.concat([message(id, entryOf(opsDn, {})), searchDone(id, code)]))())
      const identity = await authenticate(await nested(mode), credentials, AbortSignal.timeout(5000))
      expect([identity?.groups, identity?.missingGroups]).toEqual([[], expect.stringContaining(`code ${code} `)])
    }
  })

  test.each(['', '30', '3003020100', '3009020500000000000400', '3006020100048400ffff'])(
    'rejects paged results with the value %s',
    async (value) => {
      const oid = ber(4, Buffer.from('1.2.840.113556.1.4.319'))
      const control = ber(0xa0, ber(0x30, oid, ber(4, Buffer.from(value, 'hex'))))
      const done = (id: number) => message(id, Buffer.concat([result(0x65, 0), control]))
      respondWith(sends(search, 2, (id) => Buffer.concat([message(id, entryOf(opsDn, {})), done(id)]))())
      const idp = await nested('recursive')
      await expect(authenticate(idp, credentials, AbortSignal.timeout(5000))).rejects.toThrow()
    },
  )

  test('survives mutated responses', async () => {
    const mutations = rounds(60, 300)
    let [round, searches] = [0, 0]
    respondWith((socket, id, operation) => {
      if (operation !== search) return false
      searches++
      const bytes = Buffer.concat([message(id, ada), searchDone(id)])
      for (let count = 0; count < 1 + (round % 4); count++)
        bytes[(round * 7 + count * 13) % bytes.length] = (round * 31 + count) % 256
      socket.write(bytes)
      socket.end()
      return true
    })
    await directory()
    for (round = 0; round < mutations; round++) {
      const socket = await connectDirectory(settingsOf('ldaps'), AbortSignal.timeout(10_000))
      using connected = clientOn(new LdapMessages(await upgradeToTls(socket, settingsOf('ldaps'))))
      await connected.client.search('ou=people', { attributes: ['uid'] }).catch(() => undefined)
    }
    expect(searches).toBe(mutations)
  })

  test('limits the sign-ins that wait for a hanging directory, without affecting local ones', async () => {
    // The sign-in timeouts of six seconds elapse when the test aborts them.
    const timeouts: AbortController[] = []
    const originalTimeout = AbortSignal.timeout.bind(AbortSignal)
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      if (ms < 5500) return originalTimeout(ms)
      const controller = new AbortController()
      timeouts.push(controller)
      return controller.signal
    })
    onTestFinished(() => void vi.restoreAllMocks())
    let binds = 0
    respondWith(() => {
      binds++
      return true
    })
    await directory()
    const attempts: Promise<string>[] = []
    // A process computes or queues at most 20 password hashes, so the sign-ins start in steps.
    for (const total of [16, 32, 50]) {
      while (attempts.length < total) {
        const username = `user${attempts.length}`
        attempts.push(errorCodeOf(signIn({ username, password: 'a password' }, newOrigin())))
      }
      await waitFor('sign-ins wait for the directory', async () => binds === Math.min(total, 32))
    }
    expect(await errorCodeOf(signIn({ username: fixtures.platform.username, password }, newOrigin()))).toBe('no error')
    const isRejected = (attempt: Promise<string>) => Promise.race([attempt, Promise.resolve('waiting')])
    await waitFor('the others are rejected', async () => {
      const states = await Promise.all(attempts.map(isRejected))
      return states.filter((state) => state === 'rate_limited').length === 18
    })
    for (const each of timeouts) each.abort()
    const outcomes = await Promise.all(attempts)
    expect(outcomes.filter((code) => code === 'rate_limited')).toHaveLength(18)
    expect(outcomes.filter((code) => code === 'invalid_credentials')).toHaveLength(32)
  })

  test.skipIf(!isLong)('rejects a sign-in after six seconds if several directories hang', async () => {
    respondWith(() => true)
    for (let count = 0; count < 6; count++) await directory()
    const rejections: unknown[] = []
    const onRejection = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', onRejection)
    onTestFinished(() => void process.off('unhandledRejection', onRejection))
    expect(await trySignIn()).toBe('invalid_credentials')
    // Unhandled rejections are reported after the current tasks.
    await new Promise(setImmediate)
    expect(rejections).toEqual([])
  })

  test.each(['', ' ', '\t\n', '\0', '\0 a password', 'a password\0', '\u00ad\u200b', '\u3000'])(
    'does not send the password %j',
    async (secret) => {
      respondWith(() => undefined)
      await directory()
      const countBefore = hostile.connections.length
      expect(await trySignIn('ada', secret)).toBe('invalid_credentials')
      expect(hostile.connections.length).toBe(countBefore)
    },
  )
})

const onceRequested = (handle: (socket: Socket) => void) => (socket: Socket) =>
  void socket.once('data', () => handle(socket))

const withoutTls: [string, (socket: Socket) => void][] = [
  ['rejects StartTLS', (socket) => onRequest(socket, (id) => socket.write(message(id, result(0x78, 2))))],
  [
    'continues in plain text',
    (socket) => onRequest(socket, (id) => socket.write(id === 1 ? startTlsResponse : bindDone(id))),
  ],
  ['sends no response', () => undefined],
  ['responds with a bind response', (socket) => onRequest(socket, (id) => socket.write(bindDone(id)))],
  ['omits the result code', onceRequested((socket) => socket.write(message(1, ber(0x78))))],
  ['announces a message of 1 GB', onceRequested((socket) => socket.write(Buffer.from('30843fffffff0201', 'hex')))],
  ['closes the connection at once', onceRequested((socket) => socket.end())],
  ['closes the connection after its response', onceRequested((socket) => socket.end(startTlsResponse))],
  [
    'responds to the handshake with random bytes',
    onceRequested((socket) => {
      socket.write(startTlsResponse)
      socket.once('data', () => socket.write(randomBytes(500)))
    }),
  ],
  [
    'has a certificate of another authority',
    onceRequested((socket) => {
      socket.write(startTlsResponse)
      inTls(socket, fixtures.others)
    }),
  ],
]

describe.skipIf(skipReason !== '')(`hostile StartTLS${skipReason}`, () => {
  test.each(withoutTls)('sends no credentials to a directory that %s', async (_, behave) => {
    const receivedParts: Buffer[] = []
    hostile.behave = (socket) => {
      socket.on('data', (bytes) => receivedParts.push(bytes))
      behave(socket)
    }
    const idp = await directory('ldap')
    await expect(authenticate(idp, credentials, AbortSignal.timeout(800))).rejects.toThrow()
    const text = Buffer.concat(receivedParts).toString('latin1')
    for (const secret of ['a password', 'service', 'ada']) expect(text).not.toContain(secret)

    const checks = await testLdap(idp, { bindPassword: 'service' }, AbortSignal.timeout(800))
    expect(checks.find(({ ok }) => !ok)?.name).toBe('tls')
  })

  test.each([
    [[], 0, 'confirmed'],
    [['userAccountControl', '512'], 0, 'confirmed'],
    [['userAccountControl', '514'], 0, 'withdrawn'],
    [['nsAccountLock', 'true'], 0, 'withdrawn'],
    [['pwdAccountLockedTime', '000001010000Z'], 0, 'withdrawn'],
    [['pwdAccountLockedTime', '20260101000000Z'], 0, 'confirmed'],
    [['entryUUID', 'another'], 0, 'withdrawn'],
    [[], 32, 'error'],
    [[], 50, 'error'],
  ])('an entry with %j and the result code %i means that the user is %s', async ([name, value], code, status) => {
    const entry = entryOf('uid=ada,ou=people', { entryUUID: 'uuid of ada', ...(name && { [name]: value }) })
    respondWith((socket, id, operation) => {
      if (operation !== search) return false
      socket.write(Buffer.concat([message(id, entry), searchDone(id, code)]))
      return true
    })
    const answer = confirmEntry(await directory(), { subject: 'uuid of ada' }, AbortSignal.timeout(2000))
    expect(
      await answer.then(
        (found) => found.status,
        () => 'error',
      ),
    ).toBe(status)
  })

  test.each([startTlsResponse, Buffer.from('3084000000100201017884000000070a010004000400', 'hex')])(
    'upgrades to TLS after StartTLS, in short and long encoding (%#)',
    async (response) => {
      await directory('ldap')
      acceptStartTls(response)
      expect(await trySignIn()).toBe('no error')
    },
  )

  test.each([
    ['a response to a later request', bindDone(2)],
    ['half a response', bindDone(2).subarray(0, 8)],
    ['one byte', Buffer.from([0x30])],
  ])('rejects StartTLS with %s injected before TLS', async (_, injected) => {
    acceptStartTls(Buffer.concat([startTlsResponse, injected]))
    await directory('ldap')
    expect(await trySignIn()).toBe('invalid_credentials')
  })
})
