// First: it sets what the platform may reach, which core reads when it is imported.
import { acme, arrive, asRoot, credentialsOf, directory, lack, plainUrl, refusal } from '../../support/acme.ts'
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
import { atMinuteStart, newUser, password, somewhere } from '../../../support/people.ts'
import { groups, people, service, suffix } from '../../../support/slapd.ts'
import { callsOf } from '../../../support/store-calls.ts'
import { hurried } from '../../../support/time-limits.ts'
import { refusalOf } from '../../../support/world.ts'
import { callerOfTokens, enable, provider, somebody, withdrawAll } from '../../support/providers.ts'

test.skipIf(lack !== '').each<[string, ProviderSettings, { bindPassword?: string }, string]>([
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
  `with %s nobody signs in: it looks like a directory that is down, not like a wrong password${lack}`,
  async (_what, more, given, at) => {
    const settings = { ...more, ...(more.caCertificate === 'other' && { caCertificate: acme.otherCa }) }
    const idp = await directory(settings, given)
    expect(await refusal('ada')).toBe('directory_unreachable')
    expect(canary.connections).toHaveLength(0)

    const checks = await testLdap(idp, { bindPassword: given.bindPassword ?? service.bindPassword })
    expect(checks.at(-1)).toMatchObject({ name: at, ok: false, message: expect.stringMatching(/^[A-Z].+\.$/) })
    expect(checks.slice(0, -1).every(({ ok }) => ok)).toBe(true)
  },
)

test.skipIf(lack !== '')(`a test of a directory that works says so of each step${lack}`, async () => {
  for (const more of [{}, { url: plainUrl }]) {
    const checks = await testLdap(await directory(more), { bindPassword: service.bindPassword })
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['connect', true],
      ['tls', true],
      ['bind', true],
      ['search', true],
    ])
  }
})

test.skipIf(lack !== '')(
  `a provider that is disabled or gone signs nobody in, and ends what it has begun${lack}`,
  async () => {
    const idp = await directory()
    const tokens = await signIn(credentialsOf('grace'), somewhere())
    await enable(idp, false)
    expect(await refusal('grace')).toBe('invalid_credentials')
    expect(await refusalOf(refresh(tokens))).toBe('invalid_refresh_token')
    await enable(idp, true)
    expect(await refusal('grace')).toBe('nothing was refused')
    await withdrawAll()
    expect(await refusal('grace')).toBe('invalid_credentials')
  },
)

test.skipIf(lack !== '')(`the local way in asks no directory, whoever it is${lack}`, async () => {
  await directory()
  expect(await refusalOf(signInLocally(credentialsOf('ada'), somewhere()))).toBe('invalid_credentials')
})

test.skipIf(lack !== '')(
  `a name with a password here is that local account alone, and nothing of it is asked elsewhere${lack}`,
  async () => {
    await directory()
    expect(await refusal(acme.platform.username)).toBe('invalid_credentials')
    const { authProvider, id } = await arrive(acme.platform.username, password)
    expect([authProvider, id]).toEqual(['local', acme.platform.id])
    expect(await callsOf(() => signIn(acme.platform.credentials, somewhere()))).toBe(3)
    expect(await callsOf(() => refusal(acme.platform.username, 'wrong'))).toBe(5)
  },
)

test.skipIf(lack !== '')(
  `a local account that comes later takes a name from no one: the directory’s user keeps its own${lack}`,
  async () => {
    await directory()
    const taken = await arrive('long')
    expect(await refusalOf(UserAdmin.create(acme.caller, newUser(['Viewer'], 'long')))).toBe('username_taken')
    await UserAdmin.remove(acme.caller, taken.id)
    const local = await UserAdmin.create(acme.caller, newUser(['Viewer'], 'long'))
    expect(await refusal('long')).toBe('invalid_credentials')
    await UserAdmin.remove(acme.caller, local.id)
  },
)

test.skipIf(lack !== '')(
  `a name that a user of another provider has leads to the directory, and to another user${lack}`,
  async () => {
    const other = await provider(acme.caller.organisationId)
    const tokens = await signInExternal(other, somebody({ username: 'curious' }), somewhere())
    const { userId } = await callerOfTokens(tokens)
    await directory()
    const user = await arrive('curious')
    expect(user.id).not.toBe(userId)
  },
)

test.skipIf(lack !== '')(
  `directories are asked one after the other: the second lets in whom the first does not know${lack}`,
  async () => {
    const [first, second] = [await directory({ userSearchBase: groups }), await directory()].toSorted((a, b) =>
      a.id < b.id ? -1 : 1,
    )
    const user = await arrive('grace')
    expect([first, second].map((idp) => idp?.id)).toContain(user.authProvider)
    expect(await refusal('grace', 'wrong')).toBe('invalid_credentials')
  },
)

test.skipIf(lack !== '')(
  `a directory that is down keeps nobody from another one, and looks like no wrong password${lack}`,
  async () => {
    await directory({ url: `ldaps://localhost:${ports.dead}` })
    await directory()
    expect(await refusal('grace')).toBe('nothing was refused')
    expect(await refusal('grace', 'wrong')).toBe('directory_unreachable')
  },
)

test.skipIf(lack !== '')(
  `wrong passwords for a directory count as failures, by name and however they are spelled${lack}`,
  async () => {
    await directory()
    atMinuteStart()
    for (let guess = 0; guess < 5; guess++) {
      expect(await refusal(guess % 2 === 0 ? 'ada' : 'ADA', `guess ${guess}`)).toBe('invalid_credentials')
    }
    expect(await refusal('ada')).toBe('rate_limited')
    expect(await refusal('grace')).toBe('nothing was refused')
    atMinuteStart()
    expect(await refusal('ada')).toBe('nothing was refused')
  },
)

test.skipIf(lack !== '')(
  `of thirty guesses at one moment no more than five learn that they were wrong${lack}`,
  async () => {
    await directory()
    atMinuteStart()
    const guesses = Array.from({ length: 30 }, (_, guess) => (guess === 29 ? 'password of ada' : `guess ${guess}`))
    const told = await Promise.all(guesses.map((guess) => refusal('ada', guess)))
    // The right one is told so only while the others are few.
    const wrong = told.filter((answer) => answer !== 'rate_limited' && answer !== 'nothing was refused')
    expect(wrong.length).toBeLessThanOrEqual(5)
    atMinuteStart()
  },
)

test.skipIf(lack !== '')(`eight first sign-ins of one person at the same moment make one user${lack}`, async () => {
  await directory({ userLoginAttribute: 'cn' })
  const users = await Promise.all(Array.from({ length: 8 }, () => arrive('twin1')))
  expect(new Set(users.map(({ id }) => id)).size).toBe(1)
})

test.skipIf(lack !== '')(
  `an entry of megabytes is not read: it asks for what it needs, and says who comes${lack}`,
  async () => {
    await directory()
    expect(await arrive('long')).toMatchObject({ email: 'long@acme.test' })
  },
)

test.skipIf(lack !== '')(
  `a directory that stops answering keeps a sign-in waiting for seconds, and a local one not at all${lack}`,
  async () => {
    using patience = hurried(6000)
    await directory()
    const pid = acme.slapd.program.pid
    expect(pid).toBeGreaterThan(0)
    process.kill(pid, 'SIGSTOP')
    onTestFinished(() => void process.kill(pid, 'SIGCONT'))
    const startedAtMs = performance.now()
    let isWaiting = true
    const waiting = refusal('grace').finally(() => (isWaiting = false))
    expect(await refusal(acme.platform.username, password)).toBe('nothing was refused')
    expect(isWaiting).toBe(true)
    expect(await waiting).toBe('directory_unreachable')
    expect(performance.now() - startedAtMs).toBeLessThan(patience.ms + 1500)
  },
)

test.skipIf(lack !== '')(
  `a subject is the entry’s own id: who is renamed in the directory stays the same user${lack}`,
  async () => {
    const idp = await directory()
    const { subjectHash, id } = await arrive('twin2')
    expect(await get(keys.externalIdentity(idp.id, subjectHash ?? ''))).toMatchObject({ userId: id })
    await using client = await asRoot()
    await client.modifyDN(`uid=twin2,${people}`, `uid=renamed,${people}`)
    expect(await arrive('renamed', 'password of twin2')).toMatchObject({ id, username: 'twin2' })
  },
)
