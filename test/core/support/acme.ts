// Imported first: it sets the addresses that the platform may reach, which core reads when it is imported.
import { canary, ownCertificates, ports } from './directories.ts'
import { type Caller } from '@platform/core/caller'
import { type ProviderSettings } from '@platform/core/identity-providers/record'
import { signIn } from '@platform/core/identity-providers/sign-in'
import { find, type User } from '@platform/core/accounts/user'
import { Client } from 'ldapts'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { missingPrograms } from '../../support/installed-programs.ts'
import * as fixture from '../../support/fixtures.ts'
import {
  groupEntry,
  groupsDn,
  usersDn,
  userEntry,
  rootAccount,
  serviceAccount,
  startSlapd,
  suffix,
} from '../../support/slapd.ts'
import { callerOfTokens, storeProvider, removeAllProviders } from './providers.ts'

/** A platform and slapd for each test file that imports this. Providers are removed after each test. */

/** The reason for skipping tests; empty if they run. */
export const skipReason = missingPrograms('slapd', 'slapadd', 'openssl')
export const plainUrl = `ldap://localhost:${ports.plain}`

const entries = [
  userEntry('ada', { givenName: 'Ada' }),
  userEntry('grace'),
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
  `dn: cn=posix,${groupsDn}\nobjectClass: posixGroup\ncn: posix\ngidNumber: 1\nmemberUid: grace`,
  `dn: cn=curious,${groupsDn}\nobjectClass: groupOfNames\ncn: curious\nmember: cn=Curious \\+ \\"quoted\\"\\, \\<x\\>,${usersDn}`,
]

/** Set before the tests run. */
export interface Acme {
  platform: fixture.SignedInUser
  caller: Caller
  /** The authority of slapd's certificate, and another one. */
  ca: string
  otherCa: string
  slapd: Awaited<ReturnType<typeof startSlapd>>
}
export const acme = {} as Acme

beforeAll(async () => {
  acme.platform = await fixture.setUpPlatform()
  acme.caller = acme.platform.caller
  if (skipReason !== '') return
  acme.slapd = await startSlapd(ports, entries)
  acme.ca = acme.slapd.ca
  acme.otherCa = (await ownCertificates()).ca
})
afterAll(() => acme.slapd?.[Symbol.asyncDispose]())
beforeEach(() => fixture.advanceToNextMinute())
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

/** Stores a provider for slapd. */
export const directory = (
  overrides: ProviderSettings = {},
  { bindPassword = serviceAccount.bindPassword, fields = {} } = {},
) =>
  storeProvider(
    acme.caller.organisationId,
    { type: 'LDAP', settings: settingsOf(overrides), roleMappings: mappings, ...fields },
    { bindPassword },
  )

/** A client with the rights of the directory's administrator. */
export async function asRoot(): Promise<Client> {
  const client = new Client({ url: `ldaps://localhost:${ports.secure}`, tlsOptions: { ca: acme.ca } })
  await client.bind(rootAccount.bindDn, rootAccount.bindPassword)
  return client
}

export const credentialsOf = (username: string, secret = `password of ${username}`) => ({ username, password: secret })

/** Signs in and returns the user's record. */
export async function signInAs(username: string, secret?: string): Promise<User> {
  const tokens = await signIn(credentialsOf(username, secret), fixture.newOrigin())
  const { organisationId, userId } = await callerOfTokens(tokens)
  const user = await find(organisationId, userId)
  if (user === undefined) throw new Error('The user does not exist.')
  return user
}
export const signInError = (username: string, secret?: string) =>
  fixture.errorCodeOf(signIn(credentialsOf(username, secret), fixture.newOrigin()))
