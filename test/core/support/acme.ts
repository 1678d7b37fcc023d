// First: it sets what the platform may reach, which core reads when it is imported.
import { canary, ownCertificates, ports } from './directories.ts'
import { type Caller } from '@platform/core/caller'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { find, type User } from '@platform/core/accounts/user'
import { Client } from 'ldapts'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { missing } from '../../support/peers.ts'
import { atMinuteStart, type Person, platformAdministrator, somewhere } from '../../support/people.ts'
import { group, groups, people, person, root, service, startSlapd, suffix } from '../../support/slapd.ts'
import { refusalOf } from '../../support/world.ts'
import { callerOfTokens, provider, withdrawAll } from './providers.ts'

/** A platform and a real directory of a few people, for each test file that imports this. Providers go with their test. */

/** Why tests are skipped; empty: they are not. */
export const lack = missing('slapd', 'slapadd', 'openssl')
export const plainUrl = `ldap://localhost:${ports.plain}`

const entries = [
  person('ada', { givenName: 'Ada' }),
  person('grace'),
  person('twin1', { mail: 'twin@acme.test' }),
  person('twin2', { mail: 'twin@acme.test' }),
  person('two names', { uid: ['two names', 'second'] }),
  // Eight spaces, as LDIF writes them.
  person('spaced', { userPassword: ': ICAgICAgICA=' }),
  person('long', { description: 'x'.repeat(200_000) }),
  person('admin'),
  `dn: cn=No\\, Password+uid=bare,${people}\nobjectClass: inetOrgPerson\nuid: bare\ncn: No, Password\nsn: x`,
  `dn: cn=Curious \\+ \\"quoted\\"\\, \\<x\\>,${people}\nobjectClass: inetOrgPerson\nuid: curious\ncn: Curious + "quoted", <x>\nsn: x\nuserPassword: password of curious`,
  `dn: ou=elsewhere,${people}\nobjectClass: referral\nobjectClass: extensibleObject\nou: elsewhere\nref: ldap://127.0.0.1:${canary.port}/${people}`,
  group('ops', 'ada', 'grace'),
  group('security', 'ada'),
  `dn: cn=posix,${groups}\nobjectClass: posixGroup\ncn: posix\ngidNumber: 1\nmemberUid: grace`,
  `dn: cn=curious,${groups}\nobjectClass: groupOfNames\ncn: curious\nmember: cn=Curious \\+ \\"quoted\\"\\, \\<x\\>,${people}`,
]

/** What there is once the tests run. */
export interface Acme {
  platform: Person
  caller: Caller
  /** Vouches for slapd; and an authority that does not. */
  ca: string
  otherCa: string
  slapd: Awaited<ReturnType<typeof startSlapd>>
}
export const acme = {} as Acme

beforeAll(async () => {
  acme.platform = await platformAdministrator()
  acme.caller = acme.platform.caller
  if (lack !== '') return
  acme.slapd = await startSlapd(ports, entries)
  acme.ca = acme.slapd.ca
  acme.otherCa = (await ownCertificates()).ca
})
afterAll(() => acme.slapd?.[Symbol.asyncDispose]())
beforeEach(() => atMinuteStart())
afterEach(() => withdrawAll())

const settingsOf = (more: ProviderSettings = {}): ProviderSettings => ({
  url: `ldaps://localhost:${ports.secure}`,
  bindDn: service.bindDn,
  userSearchBase: people,
  groupSearchBase: groups,
  caCertificate: acme.ca,
  ...more,
})

const mappings = [
  { group: `CN=Ops, OU=Groups, ${suffix}`, role: 'Operator' as const },
  { group: `cn=security,${groups}`, role: 'Auditor' as const },
  { group: `cn=posix,${groups}`, role: 'ClusterAdmin' as const },
  { group: `cn=curious,${groups}`, role: 'OrgAdmin' as const },
]

/** A provider that leads to slapd. */
export const directory = (more: ProviderSettings = {}, { bindPassword = service.bindPassword, fields = {} } = {}) =>
  provider(
    acme.caller.organisationId,
    { type: 'LDAP', settings: settingsOf(more), roleMappings: mappings, ...fields },
    { bindPassword },
  )

/** The directory’s own administrator. */
export async function asRoot(): Promise<Client> {
  const client = new Client({ url: `ldaps://localhost:${ports.secure}`, tlsOptions: { ca: acme.ca } })
  await client.bind(root.bindDn, root.bindPassword)
  return client
}

export const credentialsOf = (username: string, secret = `password of ${username}`) => ({ username, password: secret })

/** Signs in, and answers the user's row. */
export async function arrive(username: string, secret?: string): Promise<User> {
  const tokens = await signIn(credentialsOf(username, secret), somewhere())
  const { organisationId, userId } = await callerOfTokens(tokens)
  const user = await find(organisationId, userId)
  if (user === undefined) throw new Error('There is no user.')
  return user
}
export const refusal = (username: string, secret?: string) =>
  refusalOf(signIn(credentialsOf(username, secret), somewhere()))
