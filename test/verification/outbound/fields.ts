import type { ProviderType } from '@platform/contract/identity'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { attemptDelivery } from '@platform/core/webhooks/delivery-attempt'
import { newId } from '@platform/core/id'
import type { ProviderSettings } from '@platform/core/identity-providers/record'
import { authenticate } from '@platform/core/identity-providers/ldap/ldap'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import { fetchManifest } from '@platform/core/modules/manifest-source'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import { registryClientFor } from '@platform/core/modules/registries'
import * as Webhook from '@platform/core/webhooks/webhook'
import { newProvider, portal, signInWith } from '../../core/support/oidc.ts'
import { newCaller } from '../../support/fixtures.ts'
import type { Allowed } from './servers.ts'

/** Everything that leads the platform to an address which somebody has named. */
export interface Field {
  name: string
  /** Has the platform go there as far as it will: refusals are its business. */
  visit: (address: URL) => Promise<unknown>
  /** Where it cannot be seen by the address that the platform has gone anywhere: how often it has. */
  visits?: () => number
}

const digest = `sha256:${'0'.repeat(64)}`

/** What is known of an issuer that does not answer is kept for five seconds. */
const forgetting = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  shiftClock(5001)
  return work()
}

const provider = (type: ProviderType, settings: ProviderSettings) =>
  newProvider('', { type, settings: { clientId: 'platform', ...settings } })

async function tryProvider(type: ProviderType, settings: ProviderSettings): Promise<void> {
  const row = await provider(type, settings)
  await forgetting(() => Oidc.startSignIn(row.id, {}))
  await testOidc(row, { clientSecret: 'x' })
}

async function tryDirectory(address: URL, scheme: string): Promise<void> {
  const url = `${scheme}://${address.host}`
  const settings = { url, bindDn: 'cn=x', userSearchBase: 'dc=x' }
  const row = await provider('LDAP', settings)
  await testLdap(row, { bindPassword: 'x' }, AbortSignal.timeout(1000))
  await authenticate(row, { username: 'x', password: 'x' }, AbortSignal.timeout(1000))
}

async function tryWebhook({ href }: URL): Promise<void> {
  const caller = await newCaller()
  const { id } = await Webhook.create(caller, { url: 'https://hooks.example.com/', events: ['*'] })
  const row = { id, organisationId: caller.organisationId, url: href }
  // As if it had been stored before its rules were made.
  const webhook: any = { ...row, events: ['*'], isEnabled: true, secretVersion: 1, version: 1, createdAtMs: 0 }
  const delivery: any = { id: newId('dlv'), eventId: newId('evt'), body: '{}' }
  await attemptDelivery(webhook, delivery)
}

async function tryRegistry(host: string): Promise<void> {
  const client = registryClientFor(host, { credentials: async () => ({ username: 'x', password: 'x' }) })
  await client.resolve('modules/hello', 'latest').catch(() => undefined)
  await client.blob('modules/hello', { digest, size: 10 })
}

/** Where setup says that people reach the portal is for browsers; nothing of the platform goes there. */
async function tryPublicUrl({ href }: URL, { issuer }: Allowed): Promise<void> {
  await transact([patch(keys.platform(), { set: { publicUrl: href } })])
  try {
    await Oidc.startSignIn((await newProvider(issuer.url)).id, {})
  } finally {
    await transact([patch(keys.platform(), { set: { publicUrl: portal } })])
  }
}

async function tryMetadata(name: string, { href }: URL, { issuer }: Allowed): Promise<void> {
  issuer.metadata = { [name]: href }
  try {
    await forgetting(async () => signInWith(issuer, await newProvider(issuer.url)))
  } finally {
    issuer.metadata = {}
  }
}

const redirect = ({ href }: URL) => ({ status: 302, headers: { location: href } })

async function tryRedirect(address: URL, allowed: Allowed, path: string): Promise<void> {
  allowed.issuer.instead.set(path, () => redirect(address))
  // Nobody is asked about a user where nothing says whom to ask.
  allowed.issuer.metadata = { userinfo_endpoint: `${allowed.issuer.url}/userinfo` }
  try {
    await forgetting(async () => signInWith(allowed.issuer, await newProvider(allowed.issuer.url)))
  } finally {
    allowed.issuer.instead.clear()
    allowed.issuer.metadata = {}
  }
}

const discovery = '/.well-known/openid-configuration'

export const fieldsOf = (allowed: Allowed): readonly Field[] => [
  { name: 'manifestUrl', visit: ({ href }) => fetchManifest(href) },
  { name: 'webhook url', visit: tryWebhook },
  { name: 'issuer', visit: ({ href }) => tryProvider('OIDC', { issuer: href }) },
  { name: 'authorityHost', visit: ({ href }) => tryProvider('CloudDirectory', { authorityHost: href, tenantId: 'x' }) },
  { name: 'baseUrl', visit: ({ href }) => tryProvider('OpenSourceIdp', { baseUrl: href, realm: 'x' }) },
  ...['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'].map((name) => ({
    name,
    visit: (address: URL) => tryMetadata(name, address, allowed),
  })),
  { name: 'url of a directory', visit: (address) => tryDirectory(address, 'ldap') },
  { name: 'url of a directory with TLS', visit: (address) => tryDirectory(address, 'ldaps') },
  { name: 'registry of an image, a source of modules or of releases', visit: ({ host }) => tryRegistry(host) },
  { name: 'publicUrl', visit: (address) => tryPublicUrl(address, allowed) },
  ...redirections(allowed),
]

/** Where a registry says that it hands out tokens. */
const realm = ({ href }: URL) => ({
  status: 401,
  headers: { 'www-authenticate': `Bearer realm="${href}",service="x",scope="repository:x:pull"` },
})

/** Servers that may be asked and lead on. */
const redirections = (allowed: Allowed): readonly Field[] => {
  const led = (name: string, visit: () => Promise<unknown>) => ({
    name: `where ${name} leads`,
    visit: (address: URL) => {
      allowed.answers(redirect(address))
      return visit()
    },
  })
  return [
    led('manifestUrl', () => fetchManifest(allowed.url)),
    led('a webhook', () => tryWebhook(new URL(allowed.url))),
    led('a registry', () => tryRegistry(allowed.host)),
    {
      name: 'where a registry hands out tokens',
      visit: (address) => {
        allowed.answers(realm(address))
        return tryRegistry(allowed.host)
      },
    },
    ...[discovery, '/token', '/jwks', '/userinfo'].map((path) => ({
      name: `where ${path} of an issuer leads`,
      visit: (address: URL) => tryRedirect(address, allowed, path),
      visits: () => allowed.issuer.asked(path),
    })),
  ]
}
