import type { Provider, ProviderTest } from '@platform/contract/identity'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { remove as removeWrite, upsert } from '../db/table.ts'
import { platformError } from '../error.ts'
import { allProviders, findProvider, publicUrl, secretOf } from './provider.ts'
import type { ProviderRecord, ProviderSecret } from './record.ts'
import { providerView } from './view.ts'
import { deleteOrphanQuietly, markOrphaned } from './orphaned-secrets.ts'

export async function list({ organisationId }: Caller): Promise<{ items: Provider[] }> {
  const [providers, portalUrl] = await Promise.all([allProviders(), publicUrl()])
  const oldestFirst = providers
    .filter((provider) => provider.organisationId === organisationId)
    .toSorted((a, b) => a.createdAtMs - b.createdAtMs)
  return { items: oldestFirst.map((provider) => providerView(provider, portalUrl)) }
}

export async function requireProvider({ organisationId }: Caller, providerId: string): Promise<ProviderRecord> {
  const provider = await findProvider(providerId)
  if (provider === undefined || provider.organisationId !== organisationId)
    throw platformError('identity_provider_not_found')
  return provider
}

/** Keeps the provider's users, who can no longer sign in. */
export async function remove(caller: Caller, providerId: string): Promise<void> {
  const { id, organisationId, type, displayName, secretName } = await requireProvider(caller, providerId)
  const failure = await commit(caller, {
    writes: [
      removeWrite(keys.identityProvider(id), { secretName: { is: secretName } }),
      markOrphaned(secretName),
      upsert(keys.identityProviderCount(organisationId), { add: { count: -1 } }),
    ],
    audit: { action: 'identity_provider.delete', resource: id, detail: `${type} ${displayName}` },
  })
  // The failed condition returns no item if the provider was already removed; otherwise its secret was changed.
  if (failure)
    throw failure.item === undefined ? platformError('identity_provider_not_found') : platformError('conflict')
  await deleteOrphanQuietly(secretName)
}

export async function test(caller: Caller, providerId: string): Promise<ProviderTest> {
  const provider = await requireProvider(caller, providerId)
  const checks = await runChecks(provider, await secretOf(provider))
  const failedNames = checks.filter(({ ok }) => !ok).map(({ name }) => name)
  const response = { ok: checks.length > 0 && failedNames.length === 0, checks }
  const detail = response.ok ? 'succeeded' : `failed at ${failedNames.join(', ')}`
  await commit(caller, {
    writes: [],
    response,
    audit: { action: 'identity_provider.test', resource: provider.id, detail },
  })
  return response
}

/** Provider clients are loaded on demand, for a fast cold start. */
async function runChecks(provider: ProviderRecord, secret: ProviderSecret): Promise<ProviderTest['checks']> {
  if (provider.type === 'LDAP') return (await import('./ldap/test.ts')).testLdap(provider, secret)
  return (await import('./oidc/test.ts')).testOidc(provider, secret)
}
