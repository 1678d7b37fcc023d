// First: it sets what the platform may reach, which core reads when it is imported.
import { signInAs, asRoot, directory, skipReason, plainUrl, signInError } from '../../support/acme.ts'
import { canary } from '../../support/directories.ts'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { expect, test } from 'vitest'
import { groupsDn, usersDn, serviceAccount } from '../../../support/slapd.ts'

test.skipIf(skipReason !== '').each([
  ['ldaps', {}],
  ['StartTLS', { url: plainUrl, startTls: true }],
  ['StartTLS, though nothing asks for it', { url: plainUrl }],
])(`somebody signs in with %s, with name, e-mail and roles of the directory${skipReason}`, async (_how, more) => {
  const idp = await directory(more)
  const user = await signInAs('ada')
  expect(user).toMatchObject({ email: 'ada@acme.test', authProvider: idp.id, roles: ['Operator', 'Auditor'] })
  expect(user.username).toMatch(/^ada/)
  expect(await signInAs('ADA', 'password of ada')).toMatchObject({ id: user.id, username: user.username, version: 1 })
})

test.skipIf(skipReason !== '').each<[string, string, ProviderSettings, string[]]>([
  ['members of groups', 'grace', {}, ['Operator']],
  ['what the entry says itself', 'grace', { groupSearchBase: undefined }, ['Viewer']],
  ['names of members', 'grace', { groupMemberAttribute: 'memberUid' }, ['ClusterAdmin']],
  ['a name full of what filters and names escape', 'curious', {}, ['OrgAdmin']],
  ['nothing, below a base without groups', 'ada', { groupSearchBase: usersDn }, ['Viewer']],
])(`roles follow from %s${skipReason}`, async (_how, username, more, roles) => {
  await directory(more)
  expect(await signInAs(username)).toMatchObject({ roles })
})

test.skipIf(skipReason !== '')(
  `groups that slapd keeps in the entry count, and are read at each sign-in${skipReason}`,
  async () => {
    await using client = await asRoot()
    const dn = `cn=late,${groupsDn}`
    await directory(
      { groupSearchBase: undefined },
      { fields: { roleMappings: [{ group: dn, role: 'ClusterAdmin' as const }] } },
    )
    const before = await signInAs('grace')
    await client.add(dn, { objectClass: 'groupOfNames', cn: 'late', member: `uid=grace,${usersDn}` })
    const during = await signInAs('grace')
    await client.del(dn)
    const after = await signInAs('grace')
    expect([before.roles, during.roles, after.roles]).toEqual([['Viewer'], ['ClusterAdmin'], ['Viewer']])
    expect(new Set([before.id, during.id, after.id]).size).toBe(1)
  },
)

test.skipIf(skipReason !== '').each([
  ['a wrong password', 'ada', 'wrong'],
  ['the password of somebody else', 'ada', 'password of grace'],
  ['an unknown name', 'nobody', 'password of ada'],
  ['an empty password', 'ada', ''],
  ['a password of spaces, though it is the right one', 'spaced', '        '],
  ['a password that begins with NUL', 'ada', '\0password of ada'],
  ['a password with NUL behind the right one', 'ada', 'password of ada\0'],
  ['a password without width', 'ada', '\u00ad\u200b\ufeff'],
  ['an entry without a password', 'bare', 'password of bare'],
  ['a name that is a filter for everybody', '*', 'password of ada'],
  ['a prefix and a star', 'ad*', 'password of ada'],
  ['a filter in the name', 'ada)(uid=*', 'password of ada'],
  ['a filter that closes another', '*)(|(uid=ada', 'password of ada'],
  ['a hexadecimal escape', '\\61da', 'password of ada'],
  ['a star as an escape', '\\2a', 'password of ada'],
  ['a name with NUL behind it', 'ada\0', 'password of ada'],
  ['a line break in the name', 'ada\nmail: x', 'password of ada'],
  ['a distinguished name', `uid=ada,${usersDn}`, 'password of ada'],
  ['a name that goes on as a distinguished name', `ada,${usersDn}`, 'password of ada'],
  ['spaces that the directory does not see', ' ada ', 'password of ada'],
  ['two spaces for one', 'two  names', 'password of two names'],
  ['letters without width', 'a\u00adda', 'password of ada'],
  ['half a character', 'ada\ud800', 'password of ada'],
  ['the service account', 'service', serviceAccount.bindPassword],
])(`%s signs nobody in${skipReason}`, async (_what, username, secret) => {
  await directory()
  expect(await signInError(username, secret)).toBe('invalid_credentials')
})

test.skipIf(skipReason !== '')(
  `a name that two entries have signs in neither, whosever password it is${skipReason}`,
  async () => {
    await directory({ userLoginAttribute: 'mail' })
    expect(await signInError('twin@acme.test', 'password of twin1')).toBe('invalid_credentials')
    expect(await signInError('twin@acme.test', 'password of twin2')).toBe('invalid_credentials')
    expect(await signInAs('ada@acme.test', 'password of ada')).toMatchObject({ roles: ['Operator', 'Auditor'] })
  },
)

test.skipIf(skipReason !== '')(`each of the names of one entry leads to one user${skipReason}`, async () => {
  await directory()
  const [one, two] = [await signInAs('two names'), await signInAs('second', 'password of two names')]
  expect(two.id).toBe(one.id)
})

test.skipIf(skipReason !== '')(
  `what lies behind a referral is not found, and nobody goes there${skipReason}`,
  async () => {
    await directory()
    expect(await signInError('elsewhere')).toBe('invalid_credentials')
    expect(await signInError('nobody')).toBe('invalid_credentials')
    expect(canary.connections).toHaveLength(0)
  },
)
