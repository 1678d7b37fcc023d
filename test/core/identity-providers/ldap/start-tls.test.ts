// First: it sets what the platform may reach, which core reads when it is imported.
import {
  startTlsAccepted,
  acceptStartTls,
  bindDone,
  directory,
  lack,
  outcome,
  fixtures,
} from '../../support/hostile-directory.ts'
import { ber, hostile, inTls, message, onRequest, result } from '../../support/directories.ts'
import { randomBytes } from 'node:crypto'
import { type Socket } from 'node:net'
import { authenticate } from '@platform/core/identity-providers/ldap/ldap'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { expect, test } from 'vitest'

const skipped = lack !== ''

const plainly: [string, (socket: Socket) => void][] = [
  ['refuses to go on in TLS', (socket) => onRequest(socket, (id) => socket.write(message(id, result(0x78, 2))))],
  [
    'agrees to TLS and goes on in plain text',
    (socket) => onRequest(socket, (id) => socket.write(id === 1 ? startTlsAccepted : bindDone(id))),
  ],
  ['answers StartTLS as if it were a bind', (socket) => onRequest(socket, (id) => socket.write(bindDone(id)))],
  ['agrees without a code', (socket) => socket.once('data', () => socket.write(message(1, ber(0x78))))],
  [
    'agrees with a message of 1 GB',
    (socket) => socket.once('data', () => socket.write(Buffer.from('30843fffffff0201', 'hex'))),
  ],
  ['says nothing to StartTLS', () => undefined],
  ['ends the connection at StartTLS', (socket) => socket.once('data', () => socket.end())],
  ['agrees and ends the connection', (socket) => socket.once('data', () => socket.end(startTlsAccepted))],
  [
    'agrees and answers the handshake with noise',
    (socket) =>
      socket.once('data', () => {
        socket.write(startTlsAccepted)
        socket.once('data', () => socket.write(randomBytes(500)))
      }),
  ],
  [
    'shows the certificate of another authority',
    (socket) =>
      socket.once('data', () => {
        socket.write(startTlsAccepted)
        inTls(socket, fixtures.others)
      }),
  ],
]

test.skipIf(skipped).each(plainly)(`a directory that %s never sees a password${lack}`, async (_what, behave) => {
  const seen: Buffer[] = []
  hostile.behave = (socket) => {
    socket.on('data', (bytes) => seen.push(bytes))
    behave(socket)
  }
  const idp = await directory('ldap')
  const asked = authenticate(idp, { username: 'ada', password: 'a password' }, AbortSignal.timeout(800))
  await expect(asked).rejects.toThrow()
  const text = Buffer.concat(seen).toString('latin1')
  for (const secret of ['a password', 'service', 'ada']) expect(text).not.toContain(secret)

  const checks = await testLdap(idp, { bindPassword: 'service' }, AbortSignal.timeout(800))
  expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
    ['connect', true],
    ['tls', false],
  ])
})

test.skipIf(skipped)(`StartTLS that agrees goes on in TLS, also where lengths are written in long${lack}`, async () => {
  await directory('ldap')
  for (const answer of [startTlsAccepted, Buffer.from('3084000000100201017884000000070a010004000400', 'hex')]) {
    acceptStartTls(answer)
    expect(await outcome()).toBe('no error')
  }
})

test.skipIf(skipped).each([
  ['the answer to a later question', bindDone(2)],
  ['the first half of one', bindDone(2).subarray(0, 8)],
  ['one byte', Buffer.from([0x30])],
])(`whoever adds %s to the plain text before TLS is heard in nothing${lack}`, async (_what, added) => {
  acceptStartTls(Buffer.concat([startTlsAccepted, added]))
  await directory('ldap')
  expect(await outcome()).toBe('directory_unreachable')
})
