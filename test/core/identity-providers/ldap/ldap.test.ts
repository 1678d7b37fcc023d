// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { canary, ownCertificates, ports } from '../../support/directories.ts'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import { verifySession } from '@platform/core/accounts/current-rights'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { sweep } from '@platform/core/background/sweep'
import { find, type User } from '@platform/core/accounts/user'
import type { Caller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, patch, query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { findProvider } from '@platform/core/identity-providers/provider'
import { parseFailures, type ProviderSettings } from '@platform/core/identity-providers/record'
import { refresh, signIn, startBrowserSession } from '@platform/core/identity-providers/sign-in'
import { Client } from 'ldapts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { handler } from '../../../../functions/auth.ts'
import { advanceClock } from '../../../support/clock.ts'
import {
  advanceToNextMinute,
  errorCodeOf,
  expectError,
  newOrigin,
  password,
  setUpPlatform,
  type SignedInUser,
  userRequest,
} from '../../../support/fixtures.ts'
import { missingPrograms } from '../../../support/installed-programs.ts'
import { jsonRequest, send } from '../../../support/request.ts'
import {
  groupEntry,
  groupsDn,
  hiddenDn,
  rootAccount,
  serviceAccount,
  startSlapd,
  suffix,
  userEntry,
  usersDn,
} from '../../../support/slapd.ts'
import { countStoreCalls } from '../../../support/store-calls.ts'
import { listNotifications } from '../../support/notifications.ts'
import { readAuditEntries, drainOutbox } from '../../support/outbox.ts'
import { callerOfTokens, removeAllProviders, setProviderEnabled, storeProvider } from '../../support/providers.ts'

/** The reason for skipping tests; empty if they run. */
const skipReason = missingPrograms('slapd', 'slapadd', 'openssl')
const plainUrl = `ldap://localhost:${ports.plain}`

const entries = [
  userEntry('ada', { givenName: 'Ada' }),
  userEntry('grace', { displayName: `: ${Buffer.from('Γκρέις Χόπερ').toString('base64')}` }),
  userEntry('twin1', { mail: 'twin@acme.test' }),
  userEntry('twin2', { mail: 'twin@acme.test' }),
  userEntry('two names', { uid: ['two names', 'second'] }),
  // Eight spaces in base64.
  userEntry('spaced', { userPassword: ': ICAgICAgICA=' }),
  userEntry('long', { description: 'x'.repeat(200_000) }),
  userEntry('admin'),
  `dn: cn=No\\, Password+uid=bare,${usersDn}\nobjectClass: inetOrgPerson\nuid: bare\ncn: No, Password\nsn: x`,
  `dn: cn=Curious \\+ \\"quoted\\"\\, \\<x\\>,${usersDn}\nobjectClass: inetOrgPerson\nuid: curious\ncn: Curious + "quoted", <x>\nsn: x\nuserPassword: password of curious`,
  `dn: ou=elsewhere,${usersDn}\nobjectClass: referral\nobjectClass: extensibleObject\nou: elsewhere\nref: ldap://127.0.0.1:${canary.port}/${usersDn}`,
  groupEntry('ops', 'ada', 'grace'),
  groupEntry('security', 'ada'),
  userEntry('many'),
  userEntry('most'),
  ...Array.from({ length: 1001 }, (_, index) => groupEntry(`group${index}`, 'most', ...(index < 600 ? ['many'] : []))),
  // The groups `outer` and `top` are members of each other.
  groupEntry('outer', `cn=ops,${groupsDn}`, `cn=group599,${groupsDn}`, `cn=top,${groupsDn}`),
  groupEntry('top', `cn=outer,${groupsDn}`),
  `dn: cn=posix,${groupsDn}\nobjectClass: posixGroup\ncn: posix\ngidNumber: 1\nmemberUid: grace`,
  `dn: cn=curious,${groupsDn}\nobjectClass: groupOfNames\ncn: curious\nmember: cn=Curious \\+ \\"quoted\\"\\, \\<x\\>,${usersDn}`,
]

/** Set before the tests run. */
interface Acme {
  platform: SignedInUser
  caller: Caller
  /** The authority of slapd's certificate, and another one. */
  ca: string
  otherCa: string
  slapd: Awaited<ReturnType<typeof startSlapd>>
}
const acme = {} as Acme

beforeAll(async () => {
  acme.platform = await setUpPlatform()
  acme.caller = acme.platform.caller
  if (skipReason !== '') return
  acme.slapd = await startSlapd(ports, entries)
  acme.ca = acme.slapd.ca
  acme.otherCa = (await ownCertificates()).ca
})
afterAll(() => acme.slapd?.[Symbol.asyncDispose]())
beforeEach(() => advanceToNextMinute())
afterEach(() => removeAllProviders())

const settingsOf = (overrides: ProviderSettings = {}): ProviderSettings => ({
  url: `ldaps://localhost:${ports.secure}`,
  bindDn: serviceAccount.bindDn,
  userSearchBase: usersDn,
  groupSearchBase: groupsDn,
  caCertificate: acme.ca,
  ...overrides,
})

const mappings = [
  { group: `CN=Ops, OU=Groups, ${suffix}`, role: 'Operator' as const },
  { group: `cn=security,${groupsDn}`, role: 'Auditor' as const },
  { group: `cn=posix,${groupsDn}`, role: 'ClusterAdmin' as const },
  { group: `cn=curious,${groupsDn}`, role: 'OrgAdmin' as const },
]

const directory = (
  overrides: ProviderSettings = {},
  { bindPassword = serviceAccount.bindPassword, fields = {} } = {},
) =>
  storeProvider(
    acme.caller.organisationId,
    { type: 'LDAP', settings: settingsOf(overrides), roleMappings: mappings, ...fields },
    { bindPassword },
  )

async function bindRoot(): Promise<Client> {
  const client = new Client({ url: `ldaps://localhost:${ports.secure}`, tlsOptions: { ca: acme.ca } })
  await client.bind(rootAccount.bindDn, rootAccount.bindPassword)
  return client
}

const credentialsOf = (username: string, secret = `password of ${username}`) => ({ username, password: secret })

async function signInAs(username: string, secret?: string): Promise<User> {
  const tokens = await signIn(credentialsOf(username, secret), newOrigin())
  const { organisationId, userId } = await callerOfTokens(tokens)
  const user = await find(organisationId, userId)
  if (user === undefined) throw new Error('The user does not exist.')
  return user
}
const signInError = (username: string, secret?: string) =>
  errorCodeOf(signIn(credentialsOf(username, secret), newOrigin()))

describe.skipIf(skipReason !== '')(`sign-in with LDAP${skipReason}`, () => {
  test.each([
    ['ldaps', {}],
    ['StartTLS', { url: plainUrl, startTls: true }],
    ['StartTLS by default', { url: plainUrl }],
  ])('reads name, e-mail and roles over %s', async (_, overrides) => {
    const idp = await directory(overrides)
    const user = await signInAs('ada')
    expect(user).toMatchObject({ email: 'ada@acme.test', authProvider: idp.id, roles: ['Operator', 'Auditor'] })
    expect(user.username).toMatch(/^ada/)
    expect((await signInAs('grace')).displayName).toBe('Γκρέις Χόπερ')
    const { id, username } = user
    expect(await signInAs('ADA', 'password of ada')).toMatchObject({ id, username, version: 1 })
  })

  test.each<[string, string, ProviderSettings, string[]]>([
    ['members of groups', 'grace', {}, ['Operator']],
    ['the attribute of the entry', 'grace', { groupSearchBase: undefined }, ['Viewer']],
    ['names of members', 'grace', { groupMemberAttribute: 'memberUid' }, ['ClusterAdmin']],
    ['a name with special characters', 'curious', {}, ['OrgAdmin']],
    ['a base without groups', 'ada', { groupSearchBase: usersDn }, ['Viewer']],
  ])('derives roles from %s', async (_, username, overrides, roles) => {
    await directory(overrides)
    expect(await signInAs(username)).toMatchObject({ roles })
  })

  test.each<[string, string, ProviderSettings, string[]]>([
    ['one of 600 groups', 'many', {}, ['Operator']],
    ['one of 1,001 groups', 'most', {}, ['Operator']],
    ['groups of groups, in a cycle', 'ada', { nestedGroups: 'recursive' }, ['Auditor']],
    ['groups of 600 groups, read in pages', 'many', { nestedGroups: 'recursive' }, ['Operator', 'Auditor']],
    ['direct groups only', 'ada', { nestedGroups: 'none' }, ['Viewer']],
    ['a group outside of the base', 'many', { groupSearchBase: `cn=ops,${groupsDn}` }, ['Viewer']],
  ])('derives roles from %s', async (_, username, overrides, roles) => {
    const roleMappings = [
      { group: `cn=group599,${groupsDn}`, role: 'Operator' },
      { group: `cn=top,${groupsDn}`, role: 'Auditor' },
      { group: `cn=gone,${groupsDn}`, role: 'OrgAdmin' },
      { group: 'nonsense', role: 'OrgAdmin' },
    ]
    await directory(overrides, { fields: { roleMappings } })
    expect(await signInAs(username)).toMatchObject({ roles })
  })

  test.each<[string, ProviderSettings]>([
    ['most', { nestedGroups: 'recursive' }],
    ['grace', { nestedGroups: 'matchingRule' }],
  ])('keeps the roles of %s if groups cannot be read completely with %j', async (username, overrides) => {
    const roleMappings = [...mappings, { group: `cn=group0,${groupsDn}`, role: 'Operator' }]
    const { id } = await directory(overrides, { fields: { roleMappings } })
    const change = async (settings: ProviderSettings) =>
      void (await transact([patch(keys.identityProvider(id), { set: { settings: JSON.stringify(settings) } })]))
    expect(await signInError(username)).toBe('groups_incomplete')
    await change(settingsOf())
    const user = await signInAs(username)
    expect(user).toMatchObject({ roles: ['Operator'] })
    await change(settingsOf(overrides))
    expect(await signInAs(username)).toMatchObject({ id: user.id, roles: ['Operator'] })
  })

  test.each<[string, string, ProviderSettings, object]>([
    ['groups_incomplete', 'most', { nestedGroups: 'recursive' }, {}],
    ['limit_reached', 'ada', {}, { users: 1 }],
  ])(
    'does not count the error %s after the correct password as a failure',
    async (code, username, settings, quotas) => {
      const setQuotas = (set: object) =>
        transact([patch(keys.organisation(acme.caller.organisationId), { set: { quotas: set } })])
      await directory(settings)
      await setQuotas(quotas)
      onTestFinished(async () => void (await setQuotas({})))
      for (let count = 0; count <= config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; count++)
        expect(await signInError(username)).toBe(code)
      for (const route of ['login', 'session'])
        expect((await login(route, credentialsOf(username))).json.error).toBe(code)
    },
  )

  test('reads the groups at each sign-in', async () => {
    await using client = await bindRoot()
    const dn = `cn=late,${groupsDn}`
    const fields = { roleMappings: [{ group: dn, role: 'ClusterAdmin' as const }] }
    await directory({ groupSearchBase: undefined }, { fields })
    const userBefore = await signInAs('grace')
    await client.add(dn, { objectClass: 'groupOfNames', cn: 'late', member: `uid=grace,${usersDn}` })
    const userDuring = await signInAs('grace')
    await client.del(dn)
    const userAfter = await signInAs('grace')
    expect([userBefore.roles, userDuring.roles, userAfter.roles]).toEqual([['Viewer'], ['ClusterAdmin'], ['Viewer']])
    expect(new Set([userBefore.id, userDuring.id, userAfter.id]).size).toBe(1)
  })

  test.each([
    ['a wrong password', 'ada', 'wrong'],
    ['the password of another user', 'ada', 'password of grace'],
    ['an unknown name', 'unknown', 'password of ada'],
    ['an empty password', 'ada', ''],
    ['a password of spaces, although correct', 'spaced', '        '],
    ['a password after NUL', 'ada', '\0password of ada'],
    ['a password before NUL', 'ada', 'password of ada\0'],
    ['a zero-width password', 'ada', '\u00ad\u200b\ufeff'],
    ['an entry without a password', 'bare', 'password of bare'],
    ['a wildcard', '*', 'password of ada'],
    ['a prefix with a wildcard', 'ad*', 'password of ada'],
    ['a filter in the name', 'ada)(uid=*', 'password of ada'],
    ['a closed filter in the name', '*)(|(uid=ada', 'password of ada'],
    ['a hexadecimal escape', '\\61da', 'password of ada'],
    ['an escaped wildcard', '\\2a', 'password of ada'],
    ['a name before NUL', 'ada\0', 'password of ada'],
    ['a line break in the name', 'ada\nmail: x', 'password of ada'],
    ['a distinguished name', `uid=ada,${usersDn}`, 'password of ada'],
    ['a name with a distinguished name after it', `ada,${usersDn}`, 'password of ada'],
    ['spaces around the name', ' ada ', 'password of ada'],
    ['two spaces instead of one', 'two  names', 'password of two names'],
    ['zero-width characters in the name', 'a\u00adda', 'password of ada'],
    ['a lone surrogate', 'ada\ud800', 'password of ada'],
    ['the service account', 'service', serviceAccount.bindPassword],
  ])('rejects %s', async (_, username, secret) => {
    await directory()
    expect(await signInError(username, secret)).toBe('invalid_credentials')
  })

  test('rejects a name that two entries have', async () => {
    await directory({ userLoginAttribute: 'mail' })
    expect(await signInError('twin@acme.test', 'password of twin1')).toBe('invalid_credentials')
    expect(await signInError('twin@acme.test', 'password of twin2')).toBe('invalid_credentials')
    expect((await query({ pk: keys.username('twin1').pk })).items).toEqual([])
    expect(await signInAs('ada@acme.test', 'password of ada')).toMatchObject({ roles: ['Operator', 'Auditor'] })
  })

  test('accepts each name of an entry that has several', async () => {
    await directory()
    const [first, second] = [await signInAs('two names'), await signInAs('second', 'password of two names')]
    expect(second.id).toBe(first.id)
  })

  test('guesses of strangers do not limit a browser that has signed in with the same directory name, even if the platform uses another name', async () => {
    await directory()
    const start = (name: string, secret: string, device = '') =>
      startBrowserSession(credentialsOf(name, secret), { browsers: [], origin: { ...newOrigin(), device } })
    const { device } = await start('second', 'password of two names')
    for (const name of ['second', 'grace']) {
      for (let guess = 0; guess < config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; guess++) await signInError(name, 'wrong')
    }
    await expectError(start('second', 'password of two names'), 'rate_limited')
    await expectError(start('grace', 'password of grace', device), 'rate_limited')
    expect((await start('second', 'password of two names', device)).device).toBe(device)
  })

  test('does not follow referrals', async () => {
    await directory()
    expect(await signInError('elsewhere')).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
  })

  test('requests only the required attributes of a large entry', async () => {
    await directory()
    const { id, email } = await signInAs('long')
    expect(email).toBe('long@acme.test')
    await UserAdmin.remove(acme.caller, id)
  })

  test('a user who leaves the directory loses sessions and API tokens until the next sign-in', async () => {
    await directory()
    const signInGrace = () => signIn(credentialsOf('grace'), newOrigin())
    const [first, second] = [await signInGrace(), await signInGrace()]
    const owner = await verifySession(first.accessToken)
    const { token } = await ApiToken.create(owner, { name: 'ci' })
    advanceClock(16 * 60_000)
    let tokens = first
    expect(await countStoreCalls(async () => (tokens = await refresh(first, newOrigin())))).toBe(5)
    await using client = await bindRoot()
    await client.modifyDN(`uid=grace,${usersDn}`, `uid=grace,${groupsDn}`)
    expect(await refresh(tokens, newOrigin())).toMatchObject({ tokenType: 'Bearer' })
    await expectError(refresh(second, newOrigin()), 'invalid_refresh_token')
    await expectError(verifySession(tokens.accessToken), 'unauthenticated')
    await expectError(verifyApiToken(token), 'unauthenticated')
    await client.modifyDN(`uid=grace,${groupsDn}`, `uid=grace,${usersDn}`)
    await expectError(verifyApiToken(token), 'unauthenticated')
    await signInGrace()
    expect((await verifyApiToken(token)).userId).toBe(owner.userId)
    await drainOutbox(owner.organisationId)
    const entries = await readAuditEntries(acme.caller)
    expect(entries.find(({ action }) => action === 'user.suspend')).toMatchObject({
      resource: owner.userId,
      detail: 'The directory has no entry of the user',
    })
    const { items } = await listNotifications(acme.caller)
    expect(items.map(({ title }) => title)).toContainEqual(expect.stringMatching(/^The sessions of .* were ended$/))
  })

  test('suspends API tokens of a user who left the directory without an open session, but not during an outage of less than 30 days', async () => {
    const idp = await directory()
    const owner = await verifySession((await signIn(credentialsOf('ada'), newOrigin())).accessToken)
    const { token } = await ApiToken.create(owner, { name: 'ci' })
    const useInAnotherHour = async () => {
      advanceClock(3_600_000)
      await expectError(verifyApiToken(token), 'no error')
      await sweep()
    }
    advanceClock(40 * 24 * 3_600_000)
    await useInAnotherHour()
    await using client = await bindRoot()
    await client.modifyDN(`uid=ada,${usersDn}`, `uid=ada,${groupsDn}`)
    const { settings } = (await get(keys.identityProvider(idp.id))) ?? {}
    const move = (url: unknown) => transact([patch(keys.identityProvider(idp.id), { set: { settings: url } })])
    const unreachableSettings = String(settings).replace(/:\d+"/, ':1"')
    await move(unreachableSettings)
    await useInAnotherHour()
    await move(settings)
    expect(await countStoreCalls(() => verifyApiToken(token))).toBe(1)
    await useInAnotherHour()
    await expectError(verifyApiToken(token), 'unauthenticated')
    await client.modifyDN(`uid=ada,${groupsDn}`, `uid=ada,${usersDn}`)
    await signIn(credentialsOf('ada'), newOrigin())
    await move(unreachableSettings)
    advanceClock(31 * 24 * 3_600_000)
    await useInAnotherHour()
    await expectError(verifyApiToken(token), 'unauthenticated')
    await move(settings)
  })

  test('identifies a renamed entry by its entryUUID', async () => {
    const idp = await directory()
    const { subjectHash, id } = await signInAs('twin2')
    expect(await get(keys.externalIdentity(idp.id, subjectHash ?? ''))).toMatchObject({ userId: id })
    await using client = await bindRoot()
    await client.modifyDN(`uid=twin2,${usersDn}`, `uid=renamed,${usersDn}`)
    expect(await signInAs('renamed', 'password of twin2')).toMatchObject({ id, username: 'renamed' })
  })
})

const login = (route: string, credentials: object) =>
  send(handler, jsonRequest(`/api/v1/auth/${route}`, credentials, { 'sec-fetch-site': 'same-origin' }))

describe.skipIf(skipReason !== '')(`sign-in with LDAP over HTTP${skipReason}`, () => {
  test('accepts users of a directory at /auth/login but not at /auth/local-login', async () => {
    const idp = await directory()
    const { status, json } = await login('login', credentialsOf('ada'))
    expect(status).toBe(200)
    const authorization = `Bearer ${json.accessToken}`
    const user = await send(handler, { target: '/api/v1/auth/me', headers: { authorization } })
    expect(user.json).toMatchObject({ authProvider: idp.id, email: 'ada@acme.test' })
    const error = { status: 401, json: { error: 'invalid_credentials' } }
    expect(await login('local-login', credentialsOf('ada'))).toMatchObject(error)
  })

  test('answers wrong credentials alike for all names while a directory is unreachable', async () => {
    const { id } = await directory({ url: `ldaps://localhost:${ports.dead}` })
    const localCredentials = { username: acme.platform.username, password }
    const wrongCredentials = [
      { ...localCredentials, password: 'wrong' },
      credentialsOf('ada'),
      credentialsOf('unknown'),
    ]
    const responses = await Promise.all(wrongCredentials.map((credentials) => login('login', credentials)))
    const answers = responses.map(({ status, json }) => ({ status, ...json, traceId: '' }))
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 401, error: 'invalid_credentials' })
    expect(await login('login', localCredentials)).toMatchObject({ status: 200 })
    expect((await findProvider(id))?.failures).toContain('"unreachable"')
  })

  test.each(['login', 'session'])('reports at /auth/%s that all candidate names are taken', async (route) => {
    await directory()
    const localUsers = []
    while ((await signInError('grace')) === 'no error') {
      const { id, username } = await signInAs('grace')
      await UserAdmin.remove(acme.caller, id)
      localUsers.push(await UserAdmin.create(acme.caller, userRequest(['Viewer'], username)))
    }
    const error = { status: 409, json: { error: 'username_taken' } }
    expect(await login(route, credentialsOf('grace'))).toMatchObject(error)
    for (const { id } of localUsers) await UserAdmin.remove(acme.caller, id)
  })
})

describe.skipIf(skipReason !== '')(`LDAP providers${skipReason}`, () => {
  test.each<[string, ProviderSettings, { bindPassword?: string }, string]>([
    ['an unknown authority', { caCertificate: undefined }, {}, 'tls'],
    ['another authority', { caCertificate: 'other' }, {}, 'tls'],
    ['an invalid certificate', { caCertificate: 'no PEM' }, {}, 'tls'],
    ['the certificate of another host', { url: `ldaps://127.0.0.1:${ports.secure}` }, {}, 'tls'],
    ['the certificate of another host after StartTLS', { url: `ldap://127.0.0.1:${ports.plain}` }, {}, 'tls'],
    ['another authority after StartTLS', { url: plainUrl, caCertificate: 'other' }, {}, 'tls'],
    ['ldaps at the StartTLS port', { url: `ldaps://localhost:${ports.plain}` }, {}, 'tls'],
    ['a closed port', { url: `ldaps://localhost:${ports.dead}` }, {}, 'connect'],
    ['a private address', { url: `ldaps://127.0.0.1:${canary.port}` }, {}, 'connect'],
    ['a private address in another spelling', { url: `ldaps://0x7f.1:${canary.port}` }, {}, 'connect'],
    ['a private IPv6 address', { url: `ldaps://[::1]:${canary.port}` }, {}, 'connect'],
    ['an unknown host', { url: 'ldaps://nowhere.invalid' }, {}, 'connect'],
    ['a wrong password of the service account', {}, { bindPassword: 'wrong' }, 'bind'],
    ['no password of the service account', {}, { bindPassword: '' }, 'bind'],
    ['no service account', { bindDn: '' }, {}, 'bind'],
    ['an unknown service account', { bindDn: `cn=unknown,${suffix}` }, {}, 'bind'],
    ['an unknown search base', { userSearchBase: `ou=nowhere,${suffix}` }, {}, 'search'],
    ['an invalid search base', { userSearchBase: 'nonsense' }, {}, 'search'],
  ])('reports %s to administrators', async (_, overrides, secret, failedCheck) => {
    const settings = { ...overrides, ...(overrides.caCertificate === 'other' && { caCertificate: acme.otherCa }) }
    const idp = await directory(settings, secret)
    expect(await signInError('ada')).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
    const isAnswered = ['bind', 'search'].includes(failedCheck)
    const failures = parseFailures((await findProvider(idp.id))?.failures)
    expect(Object.keys(failures)).toEqual([isAnswered ? 'answer_invalid' : 'unreachable'])
    const [detail] = Object.values(failures).map((failure) => failure.detail)
    expect(detail).toMatch(
      failedCheck === 'bind' ? /^The directory rejects the service account\. Check / : /^The .+\.$/,
    )

    const checks = await testLdap(idp, { bindPassword: secret.bindPassword ?? serviceAccount.bindPassword })
    expect(checks.at(-1)).toMatchObject({ name: failedCheck, ok: false, message: expect.stringMatching(/^[A-Z].+\.$/) })
    expect(checks.slice(0, -1).every(({ ok }) => ok)).toBe(true)
  })

  test.each([{}, { url: plainUrl }])('passes all checks of a working directory (%#)', async (overrides) => {
    const checks = await testLdap(await directory(overrides), { bindPassword: serviceAccount.bindPassword })
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual(
      ['connect', 'tls', 'bind', 'search', 'groups'].map((name) => [name, true]),
    )
  })

  test.each<[string, ProviderSettings, string]>([
    ['an unreadable search base', { userSearchBase: hiddenDn }, 'search'],
    ['an unreadable group search base', { groupSearchBase: hiddenDn }, 'groups'],
    ['an unknown group search base', { groupSearchBase: `ou=nowhere,${suffix}` }, 'groups'],
  ])('a provider test reports %s', async (_, overrides, failedCheck) => {
    const checks = await testLdap(await directory(overrides), { bindPassword: serviceAccount.bindPassword })
    expect(checks.filter(({ ok }) => !ok)).toMatchObject([{ name: failedCheck }])
  })

  test('rejects sign-ins with a disabled or removed provider', async () => {
    const idp = await directory()
    await setProviderEnabled(idp, false)
    expect(await signInError('grace')).toBe('invalid_credentials')
    await setProviderEnabled(idp, true)
    expect(await signInError('grace')).toBe('no error')
    await removeAllProviders()
    expect(await signInError('grace')).toBe('invalid_credentials')
  })

  test('does not call a directory for a name with a local password', async () => {
    await directory()
    expect(await signInError(acme.platform.username)).toBe('invalid_credentials')
    const { authProvider, id } = await signInAs(acme.platform.username, password)
    expect([authProvider, id]).toEqual(['local', acme.platform.id])
    expect(await countStoreCalls(() => signIn(acme.platform.credentials, newOrigin()))).toBe(4)
    expect(await countStoreCalls(() => signInError(acme.platform.username, 'wrong'))).toBe(4)
  })

  test('tries the next directory if the first does not know the name or is unreachable', async () => {
    const idps = [await directory({ userSearchBase: groupsDn }), await directory()]
    expect(idps.map(({ id }) => id)).toContain((await signInAs('grace')).authProvider)
    expect(await signInError('grace', 'wrong')).toBe('invalid_credentials')
    await directory({ url: `ldaps://localhost:${ports.dead}` })
    expect(await signInError('grace')).toBe('no error')
    expect(await signInError('grace', 'wrong')).toBe('invalid_credentials')
  })

  test('notifies administrators once an hour of an outage', async () => {
    const { organisationId } = acme.caller
    const { id } = await directory({ url: `ldaps://localhost:${ports.dead}` })
    const counts: number[][] = []
    for (const minutes of [0, 30, 31]) {
      advanceClock(minutes * 60_000)
      await Promise.all([signInError('ada'), signInError('grace')])
      await drainOutbox(organisationId)
      const { items } = await listNotifications(acme.caller)
      const entries = (await readAuditEntries(acme.caller)).filter(({ action }) => action === 'identity_provider.fail')
      counts.push([items, entries].map((list) => list.filter(({ resource }) => resource === id).length))
    }
    expect(counts).toEqual([
      [1, 1],
      [1, 1],
      [2, 2],
    ])
  })

  test('counts wrong passwords by name, in any case', async () => {
    await directory()
    for (let guess = 0; guess < 5; guess++) {
      expect(await signInError(guess % 2 === 0 ? 'ada' : 'ADA', `guess ${guess}`)).toBe('invalid_credentials')
    }
    expect(await signInError('ada')).toBe('rate_limited')
    expect(await signInError('grace')).toBe('no error')
    advanceToNextMinute()
    expect(await signInError('ada')).toBe('no error')
  })

  test('evaluates at most five of many concurrent guesses', async () => {
    await directory()
    const guesses = Array.from({ length: 30 }, (_, guess) => (guess === 29 ? 'password of ada' : `guess ${guess}`))
    const outcomes = await Promise.all(guesses.map((guess) => signInError('ada', guess)))
    const evaluatedOutcomes = outcomes.filter((outcome) => outcome !== 'rate_limited' && outcome !== 'no error')
    expect(evaluatedOutcomes.length).toBeLessThanOrEqual(5)
  })
})
