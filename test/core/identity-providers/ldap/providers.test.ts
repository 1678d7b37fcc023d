// First, because it sets the outbound allowlist, which core reads when it is imported.
import { acme, credentialsOf, directory, plainUrl, signInAs, signInError, skipReason } from '../../support/acme.ts'
import { canary, ports } from '../../support/directories.ts'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { refresh, signIn as signInLocally } from '@platform/core/accounts/session'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { describe, expect, test } from 'vitest'
import { advanceToNextMinute, expectError, newOrigin, password, userRequest } from '../../../support/fixtures.ts'
import { groupsDn, serviceAccount, suffix } from '../../../support/slapd.ts'
import { countStoreCalls } from '../../../support/store-calls.ts'
import * as providers from '../../support/providers.ts'

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
  ])('reports %s as an unreachable directory', async (_, overrides, secret, failedCheck) => {
    const settings = { ...overrides, ...(overrides.caCertificate === 'other' && { caCertificate: acme.otherCa }) }
    const idp = await directory(settings, secret)
    expect(await signInError('ada')).toBe('directory_unreachable')
    expect(canary.connections).toHaveLength(0)

    const checks = await testLdap(idp, { bindPassword: secret.bindPassword ?? serviceAccount.bindPassword })
    expect(checks.at(-1)).toMatchObject({ name: failedCheck, ok: false, message: expect.stringMatching(/^[A-Z].+\.$/) })
    expect(checks.slice(0, -1).every(({ ok }) => ok)).toBe(true)
  })

  test.each([{}, { url: plainUrl }])('passes all checks of a working directory (%#)', async (overrides) => {
    const checks = await testLdap(await directory(overrides), { bindPassword: serviceAccount.bindPassword })
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual(
      ['connect', 'tls', 'bind', 'search'].map((name) => [name, true]),
    )
  })

  test('rejects sign-ins and sessions of a disabled or removed provider', async () => {
    const idp = await directory()
    const tokens = await signIn(credentialsOf('grace'), newOrigin())
    await providers.setProviderEnabled(idp, false)
    expect(await signInError('grace')).toBe('invalid_credentials')
    await expectError(refresh(tokens), 'invalid_refresh_token')
    await providers.setProviderEnabled(idp, true)
    expect(await signInError('grace')).toBe('no error')
    await providers.removeAllProviders()
    expect(await signInError('grace')).toBe('invalid_credentials')
  })

  test('does not call a directory at the local sign-in', async () => {
    await directory()
    await expectError(signInLocally(credentialsOf('ada'), newOrigin()), 'invalid_credentials')
  })

  test('does not call a directory for a name with a local password', async () => {
    await directory()
    expect(await signInError(acme.platform.username)).toBe('invalid_credentials')
    const { authProvider, id } = await signInAs(acme.platform.username, password)
    expect([authProvider, id]).toEqual(['local', acme.platform.id])
    expect(await countStoreCalls(() => signIn(acme.platform.credentials, newOrigin()))).toBe(3)
    expect(await countStoreCalls(() => signInError(acme.platform.username, 'wrong'))).toBe(5)
  })

  test('reserves the name of a directory user until the user is removed', async () => {
    await directory()
    const user = await signInAs('long')
    await expectError(UserAdmin.create(acme.caller, userRequest(['Viewer'], 'long')), 'username_taken')
    await UserAdmin.remove(acme.caller, user.id)
    const local = await UserAdmin.create(acme.caller, userRequest(['Viewer'], 'long'))
    expect(await signInError('long')).toBe('invalid_credentials')
    await UserAdmin.remove(acme.caller, local.id)
  })

  test('tries the next directory if the first does not know the name or is unreachable', async () => {
    const idps = [await directory({ userSearchBase: groupsDn }), await directory()]
    expect(idps.map(({ id }) => id)).toContain((await signInAs('grace')).authProvider)
    expect(await signInError('grace', 'wrong')).toBe('invalid_credentials')
    await directory({ url: `ldaps://localhost:${ports.dead}` })
    expect(await signInError('grace')).toBe('no error')
    expect(await signInError('grace', 'wrong')).toBe('directory_unreachable')
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
    const evaluated = outcomes.filter((outcome) => outcome !== 'rate_limited' && outcome !== 'no error')
    expect(evaluated.length).toBeLessThanOrEqual(5)
  })
})
