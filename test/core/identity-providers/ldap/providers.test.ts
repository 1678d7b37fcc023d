// First: it sets settings that core reads when it is imported.
import {
  acme,
  signInAs,
  asRoot,
  credentialsOf,
  directory,
  skipReason,
  plainUrl,
  signInError,
} from '../../support/acme.ts'
import { canary, ports } from '../../support/directories.ts'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { signInExternal } from '@platform/core/identity-providers/external-user'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { refresh, signIn as signInLocally } from '@platform/core/accounts/session'
import { signIn } from '@platform/core/identity-providers/sign-in'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { expect, onTestFinished, test } from 'vitest'
import { advanceToNextMinute, userRequest, password, newOrigin, expectError } from '../../../support/fixtures.ts'
import { groupsDn, usersDn, serviceAccount, suffix } from '../../../support/slapd.ts'
import { countStoreCalls } from '../../../support/store-calls.ts'
import { fastTimers } from '../../../support/fast-timers.ts'
import {
  callerOfTokens,
  setProviderEnabled,
  storeProvider,
  externalIdentity,
  removeAllProviders,
} from '../../support/providers.ts'

test.skipIf(skipReason !== '').each<[string, ProviderSettings, { bindPassword?: string }, string]>([
  ['an authority that nobody named', { caCertificate: undefined }, {}, 'tls'],
  ['another authority', { caCertificate: 'other' }, {}, 'tls'],
  ['what is no certificate', { caCertificate: 'no PEM' }, {}, 'tls'],
  ['the certificate of another host', { url: `ldaps://127.0.0.1:${ports.secure}` }, {}, 'tls'],
  ['the certificate of another host after StartTLS', { url: `ldap://127.0.0.1:${ports.plain}` }, {}, 'tls'],
  ['another authority after StartTLS', { url: plainUrl, caCertificate: 'other' }, {}, 'tls'],
  ['a port that speaks TLS only when asked', { url: `ldaps://localhost:${ports.plain}` }, {}, 'tls'],
  ['a port where nobody listens', { url: `ldaps://localhost:${ports.dead}` }, {}, 'connect'],
  ['a private address that nobody named', { url: `ldaps://127.0.0.1:${canary.port}` }, {}, 'connect'],
  ['a private address in another spelling', { url: `ldaps://0x7f.1:${canary.port}` }, {}, 'connect'],
  ['a private IPv6 address', { url: `ldaps://[::1]:${canary.port}` }, {}, 'connect'],
  ['a name that leads nowhere', { url: 'ldaps://nowhere.invalid' }, {}, 'connect'],
  ['a wrong password of the service account', {}, { bindPassword: 'wrong' }, 'bind'],
  ['no password of the service account', {}, { bindPassword: '' }, 'bind'],
  ['no service account', { bindDn: '' }, {}, 'bind'],
  ['a service account that is none', { bindDn: `cn=nobody,${suffix}` }, {}, 'bind'],
  ['a search base that is not there', { userSearchBase: `ou=nowhere,${suffix}` }, {}, 'search'],
  ['a search base that is no name', { userSearchBase: 'nonsense' }, {}, 'search'],
])(
  `with %s nobody signs in: it looks like a directory that is down, not like a wrong password${skipReason}`,
  async (_what, more, given, at) => {
    const settings = { ...more, ...(more.caCertificate === 'other' && { caCertificate: acme.otherCa }) }
    const idp = await directory(settings, given)
    expect(await signInError('ada')).toBe('directory_unreachable')
    expect(canary.connections).toHaveLength(0)

    const checks = await testLdap(idp, { bindPassword: given.bindPassword ?? serviceAccount.bindPassword })
    expect(checks.at(-1)).toMatchObject({ name: at, ok: false, message: expect.stringMatching(/^[A-Z].+\.$/) })
    expect(checks.slice(0, -1).every(({ ok }) => ok)).toBe(true)
  },
)

test.skipIf(skipReason !== '')(`a test of a directory that works says so of each step${skipReason}`, async () => {
  for (const more of [{}, { url: plainUrl }]) {
    const checks = await testLdap(await directory(more), { bindPassword: serviceAccount.bindPassword })
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['connect', true],
      ['tls', true],
      ['bind', true],
      ['search', true],
    ])
  }
})

test.skipIf(skipReason !== '')(
  `a provider that is disabled or gone signs nobody in, and ends what it has begun${skipReason}`,
  async () => {
    const idp = await directory()
    const tokens = await signIn(credentialsOf('grace'), newOrigin())
    await setProviderEnabled(idp, false)
    expect(await signInError('grace')).toBe('invalid_credentials')
    await expectError(refresh(tokens), 'invalid_refresh_token')
    await setProviderEnabled(idp, true)
    expect(await signInError('grace')).toBe('no error')
    await removeAllProviders()
    expect(await signInError('grace')).toBe('invalid_credentials')
  },
)

test.skipIf(skipReason !== '')(`the local way in asks no directory, whoever it is${skipReason}`, async () => {
  await directory()
  await expectError(signInLocally(credentialsOf('ada'), newOrigin()), 'invalid_credentials')
})

test.skipIf(skipReason !== '')(
  `a name with a password here is that local account alone, and nothing of it is asked elsewhere${skipReason}`,
  async () => {
    await directory()
    expect(await signInError(acme.platform.username)).toBe('invalid_credentials')
    const { authProvider, id } = await signInAs(acme.platform.username, password)
    expect([authProvider, id]).toEqual(['local', acme.platform.id])
    expect(await countStoreCalls(() => signIn(acme.platform.credentials, newOrigin()))).toBe(3)
    expect(await countStoreCalls(() => signInError(acme.platform.username, 'wrong'))).toBe(5)
  },
)

test.skipIf(skipReason !== '')(
  `a local account that comes later takes a name from no one: the directory’s user keeps its own${skipReason}`,
  async () => {
    await directory()
    const taken = await signInAs('long')
    await expectError(UserAdmin.create(acme.caller, userRequest(['Viewer'], 'long')), 'username_taken')
    await UserAdmin.remove(acme.caller, taken.id)
    const local = await UserAdmin.create(acme.caller, userRequest(['Viewer'], 'long'))
    expect(await signInError('long')).toBe('invalid_credentials')
    await UserAdmin.remove(acme.caller, local.id)
  },
)

test.skipIf(skipReason !== '')(
  `a name that a user of another provider has leads to the directory, and to another user${skipReason}`,
  async () => {
    const other = await storeProvider(acme.caller.organisationId)
    const tokens = await signInExternal(other, externalIdentity({ username: 'curious' }), newOrigin())
    const { userId } = await callerOfTokens(tokens)
    await directory()
    const user = await signInAs('curious')
    expect(user.id).not.toBe(userId)
  },
)

test.skipIf(skipReason !== '')(
  `directories are asked one after the other: the second lets in whom the first does not know${skipReason}`,
  async () => {
    const [first, second] = [await directory({ userSearchBase: groupsDn }), await directory()].toSorted((a, b) =>
      a.id < b.id ? -1 : 1,
    )
    const user = await signInAs('grace')
    expect([first, second].map((idp) => idp?.id)).toContain(user.authProvider)
    expect(await signInError('grace', 'wrong')).toBe('invalid_credentials')
  },
)

test.skipIf(skipReason !== '')(
  `a directory that is down keeps nobody from another one, and looks like no wrong password${skipReason}`,
  async () => {
    await directory({ url: `ldaps://localhost:${ports.dead}` })
    await directory()
    expect(await signInError('grace')).toBe('no error')
    expect(await signInError('grace', 'wrong')).toBe('directory_unreachable')
  },
)

test.skipIf(skipReason !== '')(
  `wrong passwords for a directory count as failures, by name and however they are spelled${skipReason}`,
  async () => {
    await directory()
    advanceToNextMinute()
    for (let guess = 0; guess < 5; guess++) {
      expect(await signInError(guess % 2 === 0 ? 'ada' : 'ADA', `guess ${guess}`)).toBe('invalid_credentials')
    }
    expect(await signInError('ada')).toBe('rate_limited')
    expect(await signInError('grace')).toBe('no error')
    advanceToNextMinute()
    expect(await signInError('ada')).toBe('no error')
  },
)

test.skipIf(skipReason !== '')(
  `of thirty guesses at one moment no more than five learn that they were wrong${skipReason}`,
  async () => {
    await directory()
    advanceToNextMinute()
    const guesses = Array.from({ length: 30 }, (_, guess) => (guess === 29 ? 'password of ada' : `guess ${guess}`))
    const told = await Promise.all(guesses.map((guess) => signInError('ada', guess)))
    // The right one is told so only while the others are few.
    const wrong = told.filter((answer) => answer !== 'rate_limited' && answer !== 'no error')
    expect(wrong.length).toBeLessThanOrEqual(5)
    advanceToNextMinute()
  },
)

test.skipIf(skipReason !== '')(
  `eight first sign-ins of one person at the same moment make one user${skipReason}`,
  async () => {
    await directory({ userLoginAttribute: 'cn' })
    const users = await Promise.all(Array.from({ length: 8 }, () => signInAs('twin1')))
    expect(new Set(users.map(({ id }) => id)).size).toBe(1)
  },
)

test.skipIf(skipReason !== '')(
  `an entry of megabytes is not read: it asks for what it needs, and says who comes${skipReason}`,
  async () => {
    await directory()
    expect(await signInAs('long')).toMatchObject({ email: 'long@acme.test' })
  },
)

test.skipIf(skipReason !== '')(
  `a directory that stops answering keeps a sign-in waiting for seconds, and a local one not at all${skipReason}`,
  async () => {
    using patience = fastTimers(6000)
    await directory()
    const pid = acme.slapd.program.pid
    expect(pid).toBeGreaterThan(0)
    process.kill(pid, 'SIGSTOP')
    onTestFinished(() => void process.kill(pid, 'SIGCONT'))
    const startedAtMs = performance.now()
    let isWaiting = true
    const waiting = signInError('grace').finally(() => (isWaiting = false))
    expect(await signInError(acme.platform.username, password)).toBe('no error')
    expect(isWaiting).toBe(true)
    expect(await waiting).toBe('directory_unreachable')
    expect(performance.now() - startedAtMs).toBeLessThan(patience.ms + 1500)
  },
)

test.skipIf(skipReason !== '')(
  `a subject is the entry’s own id: who is renamed in the directory stays the same user${skipReason}`,
  async () => {
    const idp = await directory()
    const { subjectHash, id } = await signInAs('twin2')
    expect(await get(keys.externalIdentity(idp.id, subjectHash ?? ''))).toMatchObject({ userId: id })
    await using client = await asRoot()
    await client.modifyDN(`uid=twin2,${usersDn}`, `uid=renamed,${usersDn}`)
    expect(await signInAs('renamed', 'password of twin2')).toMatchObject({ id, username: 'twin2' })
  },
)
