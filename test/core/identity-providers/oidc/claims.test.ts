import { expect, test } from 'vitest'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { identityOf, lacksClaims } from '@platform/core/identity-providers/oidc/claims'

/** A provider by what claims depend on. */
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
])('of the claims %j and the settings %j the name is %s', (claims, settings, username) => {
  expect(identityOf(provider(settings), claims)?.username).toBe(username)
})

const odd = [
  undefined,
  null,
  0,
  1e308,
  true,
  {},
  { sub: 'x' },
  [],
  [[['ops']]],
  ['a', null],
  Array.from({ length: 10_000 }, () => ({})),
]

test.each(odd)('claims of a strange type change nothing (%#)', (value) => {
  const claims = { sub: 's', preferred_username: value, email: value, groups: value }
  expect(identityOf(provider(), claims)).toMatchObject({ subject: 's', username: 's', email: '' })
})

test.each([...odd, '', 's'.repeat(256)])('without a proper subject there is nobody (%#)', (sub) => {
  expect(identityOf(provider(), { sub, preferred_username: 'ada' })).toBeUndefined()
})

const nameOf = (text: string) => identityOf(provider(), { sub: 's', preferred_username: text })?.username ?? ''

test('names are short lines of well-formed text, whatever comes', () => {
  expect(nameOf('  a\u0000d\r\na\u2028\u001b[31m ')).toBe('ada[31m')
  expect(nameOf('\ud800ada').isWellFormed()).toBe(true)
  expect(nameOf('😀'.repeat(400_000)).length).toBeLessThanOrEqual(254)
  expect(nameOf('😀'.repeat(400_000)).isWellFormed()).toBe(true)
})

test.each([
  [
    ['ops', 'dev'],
    ['ops', 'dev'],
  ],
  ['ops', ['ops']],
  [['ops', 'ops', 7, null, ['dev'], { a: 1 }], ['ops']],
  [['x'.repeat(501), 'ops'], ['ops']],
  [{ ops: true }, []],
])('of the groups %j those count that are texts', (groups, expected) => {
  expect(identityOf(provider(), { sub: 's', groups })?.groups).toEqual(expected)
})

test('of many thousand groups the first five hundred count', () => {
  const groups = Array.from({ length: 20_000 }, (_, index) => `group-${index}`)
  expect(identityOf(provider(), { sub: 's', groups })?.groups).toEqual(groups.slice(0, 500))
})

test.each(['constructor', 'toString', 'hasOwnProperty'])(
  'a claim named %s is looked for among the claims only',
  (name) => {
    const given = provider({ usernameClaim: name, emailClaim: name, groupsClaim: name })
    expect(identityOf(given, { sub: 's' })).toEqual({ subject: 's', username: 's', email: '', groups: [] })
    expect(lacksClaims(given, { sub: 's' })).toBe(true)
  },
)

test('the provider is asked for more only where a claim is missing that something depends on', () => {
  const full = { sub: 's', preferred_username: 'ada', email: 'ada@example.com' }
  expect(lacksClaims(provider({}, false), full)).toBe(false)
  expect(lacksClaims(provider(), full)).toBe(true)
  expect(lacksClaims(provider(), { ...full, groups: [] })).toBe(false)
  expect(lacksClaims(provider(), { ...full, email: undefined, groups: [] })).toBe(true)
})
