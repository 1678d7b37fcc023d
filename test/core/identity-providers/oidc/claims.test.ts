import { identityOf, lacksClaims } from '@platform/core/identity-providers/oidc/claims'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { expect, test } from 'vitest'

/** The settings of a provider that affect claims. */
const provider = (settings: ProviderRecord['settings'] = {}, hasRoles = true) =>
  ({ settings, roleMappings: hasRoles ? [{ group: 'ops', role: 'Operator' }] : [] }) as unknown as ProviderRecord

test.each([
  [{ sub: 's', preferred_username: 'ada', email: 'ada@example.com' }, {}, 'ada'],
  [{ sub: 's', email: 'ada@example.com' }, {}, 'ada@example.com'],
  [{ sub: 's' }, {}, 's'],
  [{ sub: 's', preferred_username: '', email: 7 }, {}, 's'],
  [{ sub: 's', preferred_username: 'ada', upn: 'lovelace' }, { usernameClaim: 'upn' }, 'lovelace'],
  [{ sub: 's', preferred_username: 'ada' }, { usernameClaim: 'upn' }, 's'],
  [{ sub: 's', mail: 'ada@example.com' }, { emailClaim: 'mail' }, 'ada@example.com'],
])('derives the username from claims %j and settings %j: %s', (claims, settings, username) => {
  expect(identityOf(provider(settings), claims)?.username).toBe(username)
})

const manyObjects = Array.from({ length: 10_000 }, () => ({}))
const invalid = [undefined, null, 0, 1e308, true, {}, { sub: 'x' }, [], [[['ops']]], ['a', null], manyObjects]

test.each(invalid)('ignores claims of an invalid type (%#)', (value) => {
  const claims = { sub: 's', preferred_username: value, email: value, groups: value }
  expect(identityOf(provider(), claims)).toMatchObject({ subject: 's', username: 's', email: '' })
})

test.each([...invalid, '', 's'.repeat(256)])('rejects an invalid subject (%#)', (sub) => {
  expect(identityOf(provider(), { sub, preferred_username: 'ada' })).toBeUndefined()
})

test('converts names to one short line of well-formed text', () => {
  const nameOf = (name: string) => identityOf(provider(), { sub: 's', preferred_username: name })?.username ?? ''
  expect(nameOf('  a\u0000d\r\na\u2028\u001b[31m ')).toBe('ada[31m')
  expect(nameOf('\ud800ada').isWellFormed()).toBe(true)
  expect(nameOf('😀'.repeat(400_000)).length).toBeLessThanOrEqual(254)
  expect(nameOf('😀'.repeat(400_000)).isWellFormed()).toBe(true)
})

const manyGroups = Array.from({ length: 20_000 }, (_, index) => `group-${index}`)

test.each([
  [['ops', 'dev'], 'ops dev'],
  ['ops', 'ops'],
  [['ops', 'ops', 7, null, ['dev'], { a: 1 }], 'ops'],
  [['x'.repeat(501), 'ops'], 'ops'],
  [{ ops: true }, ''],
  [manyGroups, manyGroups.slice(0, 500).join(' ')],
])('accepts up to 500 texts as groups (%#)', (groups, expected) => {
  expect(identityOf(provider(), { sub: 's', groups })?.groups.join(' ')).toBe(expected)
})

test.each(['constructor', 'toString', 'hasOwnProperty'])(
  'does not read the inherited property %s as a claim',
  (name) => {
    const settings = provider({ usernameClaim: name, emailClaim: name, groupsClaim: name })
    expect(identityOf(settings, { sub: 's' })).toEqual({ subject: 's', username: 's', email: '', groups: [] })
    expect(lacksClaims(settings, { sub: 's' })).toBe(true)
  },
)

test('requires userinfo only if a claim in use is missing', () => {
  const claims = { sub: 's', preferred_username: 'ada', email: 'ada@example.com' }
  expect(lacksClaims(provider({}, false), claims)).toBe(false)
  expect(lacksClaims(provider(), claims)).toBe(true)
  expect(lacksClaims(provider(), { ...claims, groups: [] })).toBe(false)
  expect(lacksClaims(provider(), { ...claims, email: undefined, groups: [] })).toBe(true)
})
