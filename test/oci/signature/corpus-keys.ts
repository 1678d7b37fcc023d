import type { TrustedKey } from '@platform/oci/signature/verify'
import { by, type Case } from './case.ts'
import { trust } from './stored.ts'

const past = '2020-01-01T00:00:00Z'
const future = '2100-01-01T00:00:00Z'

/** One right signature of `team/hello`, and lists of keys. */
const lists: [name: string, expected: Case['expected'], ...limits: Partial<TrustedKey>[]][] = [
  ['a key for this repository', 'verified', { repositories: ['team/hello'] }],
  ['a key for the folder above', 'verified', { repositories: ['x', 'team'] }],
  ['a key for the folder above, with a slash', 'verified', { repositories: ['team/'] }],
  ['a key for another repository', 'key_out_of_scope', { repositories: ['team/other'] }],
  ['a key for a folder whose name begins so', 'key_out_of_scope', { repositories: ['tea', 'team/hell'] }],
  ['a key for what is below', 'key_out_of_scope', { repositories: ['team/hello/x'] }],
  ['a key for this repository at this registry', 'verified', { repositories: ['registry.test/team/hello'] }],
  ['a key for this registry', 'verified', { repositories: ['registry.test'] }],
  ['a key for the repository at another registry', 'key_out_of_scope', { repositories: ['registry.test:5000/team'] }],
  [
    'a key for a registry on this machine',
    'key_out_of_scope',
    { repositories: ['localhost/team', 'localhost:1/team'] },
  ],
  ['a key for no repository', 'key_out_of_scope', { repositories: [] }],
  ['a key for a repository without a name', 'key_out_of_scope', { repositories: ['', '/'] }],
  ['a key that is valid now', 'verified', { notBefore: past, notAfter: future }],
  ['a key of the past', 'key_out_of_time', { notAfter: past }],
  ['a key of the future', 'key_out_of_time', { notBefore: future }],
  ['a key until a day that is none', 'key_out_of_time', { notAfter: 'some day' }],
  ['a key from a day that is none', 'key_out_of_time', { notBefore: 'some day' }],
  ['a key twice in the list, once of the past', 'verified', { notAfter: past }, {}],
  [
    'a key twice in the list, here of the past and now elsewhere',
    'key_out_of_time',
    { notAfter: past },
    { repositories: ['elsewhere'] },
  ],
]

export const keyCases: Case[] = lists.map(([name, expected, ...limits]) => ({
  name,
  expected,
  make: by('p256'),
  keys: limits.map((each) => trust('p256', each)),
}))
