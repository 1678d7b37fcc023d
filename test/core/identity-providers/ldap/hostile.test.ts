// First: it sets what the platform may reach, which core reads when it is imported.
import {
  ada,
  type Answer,
  at,
  bind,
  bindDone,
  directory,
  respondWith,
  lack,
  outcome,
  search,
  searchDone,
  settingsOf,
  fixtures,
  writing,
} from '../../support/hostile-directory.ts'
import { canary, hostile, inTls, message, onRequest, references } from '../../support/directories.ts'
import { refusing, tiny, unreachable } from '../../support/hostile-answers.ts'
import { randomBytes } from 'node:crypto'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { authenticate, clientOn } from '@platform/core/identity-providers/ldap/ldap'
import { LdapMessages } from '@platform/core/identity-providers/ldap/wire'
import { connectDirectory, upgradeToTls } from '@platform/core/identity-providers/ldap/socket'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { expect, onTestFinished, test } from 'vitest'
import { isLong, rounds } from '../../../support/long.ts'
import { password, errorCodeOf, newOrigin } from '../../../support/fixtures.ts'
import { fastTimers } from '../../../support/fast-timers.ts'
import { callerOfTokens } from '../../support/providers.ts'

const skipped = lack !== ''

/** Six seconds long, as that other one is by which a silent directory is told by default. */
const waitedFor: [string, () => Answer][] = isLong ? [['is silent', () => () => true]] : []

test.skipIf(skipped)(
  `the stand-in is one that people can sign in with, where it answers as it should${lack}`,
  async () => {
    respondWith(() => undefined)
    await directory()
    const tokens = await signIn({ username: 'ada', password: 'a password' }, newOrigin())
    expect(await callerOfTokens(tokens)).toMatchObject({ organisationId: fixtures.caller.organisationId })
  },
)

test.skipIf(skipped).each(unreachable)(
  `a directory that %s vouches for nobody, and is not waited for${lack}`,
  async (_what, answer) => {
    respondWith(answer())
    const idp = await directory()
    const startedAtMs = performance.now()
    const asked = authenticate(idp, { username: 'ada', password: 'a password' }, AbortSignal.timeout(rounds(400, 800)))
    await expect(asked).rejects.toThrow()
    expect(performance.now() - startedAtMs).toBeLessThan(2500)
    expect(hostile.connections.length).toBeGreaterThan(0)
  },
)

test.skipIf(skipped).each<[string, () => Answer]>([
  ...waitedFor,
  [
    'answers noise',
    at(
      bind,
      1,
      writing(() => randomBytes(5000)),
    ),
  ],
  ['breaks the connection', at(bind, 2, (socket) => void socket.destroy())],
])(
  `a sign-in with a directory that %s ends within seconds, and not as if the password were wrong${lack}`,
  async (_what, answer) => {
    respondWith(answer())
    await directory()
    const startedAtMs = performance.now()
    expect(await outcome()).toBe('directory_unreachable')
    expect(performance.now() - startedAtMs).toBeLessThan(7500)
  },
)

test.skipIf(skipped).each(refusing)(
  `a directory that %s refuses: the password is wrong${lack}`,
  async (_what, answer) => {
    respondWith(answer())
    await directory()
    expect(await outcome()).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
  },
)

test.skipIf(skipped)(`references among the answers are left out, and nobody is asked there${lack}`, async () => {
  const elsewhere = references(`ldap://127.0.0.1:${canary.port}/`)
  respondWith(
    at(
      search,
      1,
      writing(
        (id) => message(id, elsewhere),
        (id) => message(id, ada),
        tiny(2000),
        (id) => searchDone(id),
      ),
    )(),
  )
  await directory()
  expect(await outcome()).toBe('no error')
  expect(canary.connections).toHaveLength(0)
})

test.skipIf(skipped)(`an answer that comes in single bytes is the same answer${lack}`, async () => {
  hostile.behave = (plain) => {
    const socket = inTls(plain, fixtures.own)
    onRequest(socket, (id, operation, bytes) => {
      const isForUser = bytes.includes('ou=people') && !bytes.includes('ou=groups')
      const found = operation === search && isForUser ? [message(id, ada)] : []
      const answer = Buffer.concat([...found, operation === bind ? bindDone(id) : searchDone(id)])
      for (const byte of answer) socket.write(Buffer.from([byte]))
    })
  }
  await directory()
  expect(await outcome()).toBe('no error')
})

const mangled = rounds(60, 300)

test.skipIf(skipped)(`no mangled answer ends the process or keeps it busy, of ${mangled}${lack}`, async () => {
  let [round, asked] = [0, 0]
  respondWith((socket, id, operation) => {
    if (operation !== search) return false
    asked++
    const bytes = Buffer.concat([message(id, ada), searchDone(id)])
    for (let count = 0; count < 1 + (round % 4); count++)
      bytes[(round * 7 + count * 13) % bytes.length] = (round * 31 + count) % 256
    socket.write(bytes)
    socket.end()
    return true
  })
  await directory()
  for (round = 0; round < mangled; round++) {
    const signal = AbortSignal.timeout(5000)
    const socket = await connectDirectory(settingsOf('ldaps'), signal)
    using opened = clientOn(new LdapMessages(await upgradeToTls(socket, settingsOf('ldaps'))))
    await opened.client.search('ou=people', { attributes: ['uid'] }).catch(() => undefined)
  }
  expect(asked).toBe(mangled)
})

test.skipIf(skipped)(
  `while a directory hangs no more than a few sign-ins wait for it, and local ones do not${lack}`,
  async () => {
    using _ = fastTimers(6000)
    respondWith(() => true)
    await directory()
    const many = Array.from({ length: 50 }, (_, index) =>
      errorCodeOf(signIn({ username: `user${index}`, password: 'a password' }, newOrigin())),
    )
    expect(await errorCodeOf(signIn({ username: fixtures.platform.username, password }, newOrigin()))).toBe('no error')
    const outcomes = await Promise.all(many)
    expect(outcomes.filter((each) => each === 'rate_limited')).toHaveLength(18)
    expect(outcomes.filter((each) => each === 'directory_unreachable')).toHaveLength(32)
  },
)

test.skipIf(skipped || !isLong)(
  `directories that hang, more than there is time for, end the sign-in and not the process${lack}`,
  async () => {
    respondWith(() => true)
    for (let count = 0; count < 6; count++) await directory()
    const lost: unknown[] = []
    const lose = (reason: unknown) => void lost.push(reason)
    process.on('unhandledRejection', lose)
    onTestFinished(() => void process.off('unhandledRejection', lose))
    expect(await outcome()).toBe('directory_unreachable')
    // What a rejection has nobody for is told once the tasks at hand are done.
    await new Promise(setImmediate)
    expect(lost).toEqual([])
  },
)

test.skipIf(skipped)(`nothing of a name that fails is left behind but the count of failures${lack}`, async () => {
  respondWith(
    at(
      search,
      1,
      writing((id) => searchDone(id)),
    )(),
  )
  await directory()
  expect(await outcome('stranger')).toBe('invalid_credentials')
  expect((await query({ pk: keys.username('stranger').pk })).items).toEqual([])
})

test.skipIf(skipped).each(['', ' ', '\t\n', '\0', '\0 a password', 'a password\0', '\u00ad\u200b', '\u3000'])(
  `a directory that lets everybody in never gets to see the password %j${lack}`,
  async (secret) => {
    respondWith(() => undefined)
    await directory()
    const before = hostile.connections.length
    expect(await outcome('ada', secret)).toBe('invalid_credentials')
    expect(hostile.connections.length).toBe(before)
  },
)
