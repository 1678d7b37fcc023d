import type { ProviderType } from '@platform/contract/identity'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { authenticate } from '@platform/core/identity-providers/ldap/ldap'
import { testLdap } from '@platform/core/identity-providers/ldap/test'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import type { ProviderSettings } from '@platform/core/identity-providers/record'
import { fetchManifest } from '@platform/core/modules/manifest-source'
import { registryClientFor } from '@platform/core/modules/registries'
import { attemptDelivery } from '@platform/core/webhooks/delivery-attempt'
import * as Webhook from '@platform/core/webhooks/webhook'
import { newProvider, portal, signInWith } from '../../core/support/oidc.ts'
import { newCaller } from '../../support/fixtures.ts'
import type { AllowedServers } from './servers.ts'

export interface UrlField {
  name: string
  use: (address: URL) => Promise<unknown>
  /** How often the platform reached the server; by default the number of connections to the allowed server. */
  countVisits?: () => number
}

const digest = `sha256:${'0'.repeat(64)}`

/** Unreachable issuers are cached for five seconds. */
const expireIssuerCache = () => shiftClock(5001)

async function useProvider(type: ProviderType, settings: ProviderSettings): Promise<void> {
  const provider = await newProvider('', { type, settings: { clientId: 'platform', ...settings } })
  expireIssuerCache()
  await Oidc.startSignIn(provider.id, {})
  await testOidc(provider, { clientSecret: 'x' })
}

async function useDirectory(url: string): Promise<void> {
  const settings = { clientId: 'platform', url, bindDn: 'cn=x', userSearchBase: 'dc=x' }
  const provider = await newProvider('', { type: 'LDAP', settings })
  await testLdap(provider, { bindPassword: 'x' }, AbortSignal.timeout(1000))
  await authenticate(provider, { username: 'x', password: 'x' }, AbortSignal.timeout(1000))
}

/** Passes the URL directly to the delivery, as if the webhook had been stored before webhook URLs were validated. */
async function callWebhook(url: string): Promise<void> {
  const { organisationId, ...caller } = await newCaller()
  const { id } = await Webhook.create(
    { organisationId, ...caller },
    { url: 'https://hooks.example.com/', events: ['*'] },
  )
  const state = { events: ['*'], isEnabled: true, secretVersion: 1, version: 1, createdAtMs: 0 }
  const delivery: any = { id: newId('dlv'), eventId: newId('evt'), body: '{}' }
  await attemptDelivery({ id, organisationId, url, ...state } as any, delivery)
}

async function useRegistry(host: string): Promise<void> {
  const client = registryClientFor(host, { credentials: async () => ({ username: 'x', password: 'x' }) })
  await client.resolve('modules/hello', 'latest').catch(() => undefined)
  await client.blob('modules/hello', { digest, size: 10 })
}

async function usePublicUrl(publicUrl: string, { issuer }: AllowedServers): Promise<void> {
  await transact([patch(keys.platform(), { set: { publicUrl } })])
  try {
    await Oidc.startSignIn((await newProvider(issuer.url)).id, {})
  } finally {
    await transact([patch(keys.platform(), { set: { publicUrl: portal } })])
  }
}

async function useMetadata(metadata: Record<string, string>, { issuer }: AllowedServers): Promise<void> {
  issuer.metadata = metadata
  try {
    expireIssuerCache()
    await signInWith(issuer, await newProvider(issuer.url))
  } finally {
    issuer.metadata = {}
    issuer.overrides.clear()
  }
}

const redirectTo = ({ href }: URL) => ({ status: 302, headers: { location: href } })
const tokenRealm = ({ href }: URL) => ({
  status: 401,
  headers: { 'www-authenticate': `Bearer realm="${href}",service="x",scope="repository:x:pull"` },
})

export const urlFields = (allowed: AllowedServers): readonly UrlField[] => [
  { name: 'manifestUrl', use: ({ href }) => fetchManifest(href) },
  { name: 'webhook URL', use: ({ href }) => callWebhook(href) },
  { name: 'issuer', use: ({ href }) => useProvider('OIDC', { issuer: href }) },
  { name: 'authorityHost', use: ({ href }) => useProvider('CloudDirectory', { authorityHost: href, tenantId: 'x' }) },
  { name: 'baseUrl', use: ({ href }) => useProvider('OpenSourceIdp', { baseUrl: href, realm: 'x' }) },
  { name: 'LDAP URL', use: ({ host }) => useDirectory(`ldap://${host}`) },
  { name: 'LDAPS URL', use: ({ host }) => useDirectory(`ldaps://${host}`) },
  { name: 'registry', use: ({ host }) => useRegistry(host) },
  { name: 'publicUrl', use: ({ href }) => usePublicUrl(href, allowed) },
  ...['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'].map((name) => ({
    name,
    use: ({ href }: URL) => useMetadata({ [name]: href }, allowed),
  })),
  ...redirections(allowed),
]

function redirections(allowed: AllowedServers): readonly UrlField[] {
  const { issuer, host, url, respondWith } = allowed
  const afterResponse = (
    name: string,
    response: typeof redirectTo | typeof tokenRealm,
    use: () => Promise<unknown>,
  ) => ({
    name,
    use: (address: URL) => {
      respondWith(response(address))
      return use()
    },
  })
  return [
    afterResponse('redirect of manifestUrl', redirectTo, () => fetchManifest(url)),
    afterResponse('redirect of a webhook', redirectTo, () => callWebhook(url)),
    afterResponse('redirect of a registry', redirectTo, () => useRegistry(host)),
    afterResponse('token realm of a registry', tokenRealm, () => useRegistry(host)),
    ...['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo'].map((path) => ({
      name: `redirect of ${path}`,
      use: (address: URL) => {
        issuer.overrides.set(path, () => redirectTo(address))
        return useMetadata({ userinfo_endpoint: `${issuer.url}/userinfo` }, allowed)
      },
      countVisits: () => issuer.countRequests(path),
    })),
  ]
}
