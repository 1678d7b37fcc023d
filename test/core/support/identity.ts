import { ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import type { ProviderRequest } from '@platform/contract/identity'
import { config } from '@platform/core/config'
import { findProvider, secretOf } from '@platform/core/identity-providers/provider'
import type { CallHook } from '../../support/store-calls.ts'

const client = { clientId: 'platform', clientSecret: 'first secret' }

export const oidc = {
  type: 'OIDC',
  issuer: 'https://id.example.com/acme',
  ...client,
} as const satisfies ProviderRequest

export const cloud = {
  type: 'CloudDirectory',
  tenantId: '5f2c1f4e-8a51-4c0e-9d6b-0e2f3a4b5c6d',
  ...client,
} as const satisfies ProviderRequest

export const openSource = {
  type: 'OpenSourceIdp',
  baseUrl: 'https://sso.example.com',
  realm: 'acme',
  ...client,
} as const satisfies ProviderRequest

export const ldap = {
  type: 'LDAP',
  url: 'ldaps://directory.example.com',
  bindDn: 'cn=platform,dc=example,dc=com',
  bindPassword: 'first secret',
  userSearchBase: 'ou=people,dc=example,dc=com',
} as const satisfies ProviderRequest

export const requestByType = { OIDC: oidc, CloudDirectory: cloud, OpenSourceIdp: openSource, LDAP: ldap } as const

export async function listSecretNames(providerId: string): Promise<string[]> {
  const Values = [`${config.PLAT_SECRET_IDENTITY_PREFIX}/${providerId}/`]
  const { SecretList = [] } = await new SecretsManagerClient().send(
    new ListSecretsCommand({ Filters: [{ Key: 'name', Values }], MaxResults: 100 }),
  )
  return SecretList.map(({ Name = '' }) => Name)
}

export async function secretInUse(providerId: string): Promise<string | undefined> {
  const record = await findProvider(providerId)
  return record && (await secretOf(record)).clientSecret
}

export function onSecretCall(hook: CallHook): Disposable {
  const prototype: { send: unknown } = SecretsManagerClient.prototype
  const { send } = prototype
  prototype.send = async function hooked(this: SecretsManagerClient, ...args: unknown[]) {
    await hook.before()
    const result: unknown = await Reflect.apply(send as () => unknown, this, args)
    await hook.after()
    return result
  }
  return { [Symbol.dispose]: () => void (prototype.send = send) }
}
