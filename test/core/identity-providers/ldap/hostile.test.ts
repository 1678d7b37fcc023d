// First, because it sets the outbound allowlist, which core reads when it is imported.
import {
  acceptStartTls,
  ada,
  type Answer,
  at,
  bind,
  bindDone,
  directory,
  fixtures,
  lack,
  outcome,
  refusing,
  respondWith,
  search,
  searchDone,
  settingsOf,
  startTlsAccepted,
  tiny,
  unreachable,
  writing,
} from '../../support/hostile-directory.ts'
import { randomBytes } from 'node:crypto'
import { type Socket } from 'node:net'
import { authenticate, clientOn } from '@platform/core/identity-providers/ldap/ldap'
import { connectDirectory, upgradeToTls } from '@platform/core/identity-providers/ldap/socket'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { LdapMessages } from '@platform/core/identity-providers/ldap/wire'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { errorCodeOf, newOrigin, password } from '../../../support/fixtures.ts'
import { isLong, rounds } from '../../../support/long.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { ber, canary, hostile, inTls, message, onRequest, references, result } from '../../support/directories.ts'
import { callerOfTokens } from '../../support/providers.ts'

const credentials = { username: 'ada', password: 'a password' }

describe.skipIf(lack !== '')(`hostile LDAP directories${lack}`, () => {
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
    expect(await outcome()).toBe('no error')
  })

  test.each(unreachable)('fails if a directory %s', async (_, answer) => {
    const deadline = new AbortController()
    const handle = answer()
    respondWith((...request) => {
      setTimeout(() => deadline.abort(), rounds(300, 800))
      return handle(...request)
    })
    await expect(authenticate(await directory(), credentials, deadline.signal)).rejects.toThrow()
    expect(hostile.connections.length).toBeGreaterThan(0)
  })

  test.each<[string, () => Answer]>([
    [
      'random bytes',
      at(
        bind,
        1,
        writing(() => randomBytes(5000)),
      ),
    ],
    ['a reset connection', at(bind, 2, (socket) => void socket.destroy())],
  ])('reports %s as an unreachable directory', async (_, answer) => {
    respondWith(answer())
    await directory()
    expect(await outcome()).toBe('directory_unreachable')
  })

  test.each(refusing)('rejects the credentials if a directory %s', async (_, answer) => {
    respondWith(answer())
    await directory()
    expect(await outcome()).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
  })

  test('ignores search references', async () => {
    const reference = references(`ldap://127.0.0.1:${canary.port}/`)
    const parts = [(id: number) => message(id, reference), (id: number) => message(id, ada), tiny(2000), searchDone]
    respondWith(at(search, 1, writing(...parts.map((part) => (id: number) => part(id))))())
    await directory()
    expect(await outcome()).toBe('no error')
    expect(canary.connections).toHaveLength(0)
  })

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
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      if (ms !== 6000) return timeout(ms)
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
    const attempts = Array.from({ length: 50 }, (_, index) =>
      errorCodeOf(signIn({ username: `user${index}`, password: 'a password' }, newOrigin())),
    )
    await waitFor('32 sign-ins wait for the directory', async () => binds === 32)
    expect(await errorCodeOf(signIn({ username: fixtures.platform.username, password }, newOrigin()))).toBe('no error')
    const rejected = await Promise.race([Promise.all(attempts), Promise.resolve('waiting')])
    expect(rejected).toBe('waiting')
    for (const each of timeouts) each.abort()
    const outcomes = await Promise.all(attempts)
    expect(outcomes.filter((code) => code === 'rate_limited')).toHaveLength(18)
    expect(outcomes.filter((code) => code === 'directory_unreachable')).toHaveLength(32)
  })

  test.skipIf(!isLong)('rejects a sign-in after six seconds if several directories hang', async () => {
    respondWith(() => true)
    for (let count = 0; count < 6; count++) await directory()
    const rejections: unknown[] = []
    const onRejection = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', onRejection)
    onTestFinished(() => void process.off('unhandledRejection', onRejection))
    expect(await outcome()).toBe('directory_unreachable')
    // Unhandled rejections are reported after the current tasks.
    await new Promise(setImmediate)
    expect(rejections).toEqual([])
  })

  test.each(['', ' ', '\t\n', '\0', '\0 a password', 'a password\0', '\u00ad\u200b', '\u3000'])(
    'does not send the password %j',
    async (secret) => {
      respondWith(() => undefined)
      await directory()
      const before = hostile.connections.length
      expect(await outcome('ada', secret)).toBe('invalid_credentials')
      expect(hostile.connections.length).toBe(before)
    },
  )
})

const onceRequested = (handle: (socket: Socket) => void) => (socket: Socket) =>
  void socket.once('data', () => handle(socket))

const withoutTls: [string, (socket: Socket) => void][] = [
  ['rejects StartTLS', (socket) => onRequest(socket, (id) => socket.write(message(id, result(0x78, 2))))],
  [
    'continues in plain text',
    (socket) => onRequest(socket, (id) => socket.write(id === 1 ? startTlsAccepted : bindDone(id))),
  ],
  ['sends no response', () => undefined],
  ['responds with a bind response', (socket) => onRequest(socket, (id) => socket.write(bindDone(id)))],
  ['omits the result code', onceRequested((socket) => socket.write(message(1, ber(0x78))))],
  ['announces a message of 1 GB', onceRequested((socket) => socket.write(Buffer.from('30843fffffff0201', 'hex')))],
  ['closes the connection at once', onceRequested((socket) => socket.end())],
  ['closes the connection after its response', onceRequested((socket) => socket.end(startTlsAccepted))],
  [
    'responds to the handshake with random bytes',
    onceRequested((socket) => {
      socket.write(startTlsAccepted)
      socket.once('data', () => socket.write(randomBytes(500)))
    }),
  ],
  [
    'has a certificate of another authority',
    onceRequested((socket) => {
      socket.write(startTlsAccepted)
      inTls(socket, fixtures.others)
    }),
  ],
]

describe.skipIf(lack !== '')(`hostile StartTLS${lack}`, () => {
  test.each(withoutTls)('sends no credentials to a directory that %s', async (_, behave) => {
    const received: Buffer[] = []
    hostile.behave = (socket) => {
      socket.on('data', (bytes) => received.push(bytes))
      behave(socket)
    }
    const idp = await directory('ldap')
    await expect(authenticate(idp, credentials, AbortSignal.timeout(800))).rejects.toThrow()
    const text = Buffer.concat(received).toString('latin1')
    for (const secret of ['a password', 'service', 'ada']) expect(text).not.toContain(secret)

    const checks = await testLdap(idp, { bindPassword: 'service' }, AbortSignal.timeout(800))
    expect(checks.find(({ ok }) => !ok)?.name).toBe('tls')
  })

  test.each([startTlsAccepted, Buffer.from('3084000000100201017884000000070a010004000400', 'hex')])(
    'upgrades to TLS after StartTLS, in short and long encoding (%#)',
    async (response) => {
      await directory('ldap')
      acceptStartTls(response)
      expect(await outcome()).toBe('no error')
    },
  )

  test.each([
    ['a response to a later request', bindDone(2)],
    ['half a response', bindDone(2).subarray(0, 8)],
    ['one byte', Buffer.from([0x30])],
  ])('rejects StartTLS with %s injected before TLS', async (_, injected) => {
    acceptStartTls(Buffer.concat([startTlsAccepted, injected]))
    await directory('ldap')
    expect(await outcome()).toBe('directory_unreachable')
  })
})
