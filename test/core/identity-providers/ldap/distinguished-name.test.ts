import { normaliseDn } from '@platform/core/identity-providers/ldap/distinguished-name'
import { expect, test } from 'vitest'

test.each([
  [String.raw`CN=Ops, OU=Groups,dc=acme`, String.raw`cn=ops,ou=groups,DC=acme`],
  [String.raw`cn=a\,b`, String.raw`cn=a\2Cb`],
  [String.raw`cn=a\\b`, String.raw`cn=a\5cb`],
  [String.raw`cn=\C3\A9t\C3\A9`, 'cn=été'],
  ['cn=e\u0301', 'cn=\u00e9'],
  ['cn=a+uid=b', 'UID=b + CN=a'],
  [String.raw`cn=a\20`, String.raw`cn=a\ `],
  ['cn=a=b', String.raw`cn=a\3Db`],
])('%j and %j are equal', (first, second) => {
  expect(normaliseDn(first)).toBe(normaliseDn(second))
})

test.each([
  // Names with a backslash, which creators of groups can choose.
  [String.raw`cn=op\5Cs`, 'cn=ops'],
  [String.raw`cn=op\\s`, 'cn=ops'],
  [String.raw`cn=a\5C\2Cb`, String.raw`cn=a\,b`],
  [String.raw`cn=a\\2cb`, String.raw`cn=a\,b`],
  [String.raw`cn=a\5C5Cb`, String.raw`cn=a\\b`],
  ['cn=ops\u00a0', 'cn=ops'],
  ['cn=ops\u2003', 'cn=ops'],
  [String.raw`cn=ops\ `, 'cn=ops'],
  [String.raw`cn=ops\ `, String.raw`cn=ops\5c`],
  [String.raw`cn=\FF`, String.raw`cn=\FE`],
  [String.raw`cn=a\,ou=b`, 'cn=a,ou=b'],
  [String.raw`cn=a\+uid=b`, 'cn=a+uid=b'],
  ['cn=a,cn=b', 'cn=b,cn=a'],
])('%j and %j are different', (first, second) => {
  expect(normaliseDn(first)).not.toBe(normaliseDn(second))
})
