import { ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { type ProviderRequest } from '@platform/contract/identity'
import { config } from '@platform/core/config'
import { findProvider, secretOf } from '@platform/core/identity-providers/provider'
import { onStoreCall } from '../../support/store-calls.ts'

/** Identity providers for tests, and what is kept of them. */

export const oidc = {
  type: 'OIDC',
  issuer: 'https://id.example.com/acme',
  clientId: 'platform',
  clientSecret: 'first secret',
} as const satisfies ProviderRequest

export const cloud = {
  type: 'CloudDirectory',
  tenantId: '5f2c1f4e-8a51-4c0e-9d6b-0e2f3a4b5c6d',
  clientId: 'platform',
  clientSecret: 'first secret',
} as const satisfies ProviderRequest

export const openSource = {
  type: 'OpenSourceIdp',
  baseUrl: 'https://sso.example.com',
  realm: 'acme',
  clientId: 'platform',
  clientSecret: 'first secret',
} as const satisfies ProviderRequest

export const ldap = {
  type: 'LDAP',
  url: 'ldaps://directory.example.com',
  bindDn: 'cn=platform,dc=example,dc=com',
  bindPassword: 'first secret',
  userSearchBase: 'ou=people,dc=example,dc=com',
} as const satisfies ProviderRequest

export const everyType = { OIDC: oidc, CloudDirectory: cloud, OpenSourceIdp: openSource, LDAP: ldap } as const

/** The names of the secrets that Secrets Manager holds for a provider. */
export async function secretNames(providerId: string): Promise<string[]> {
  const Values = [`${config.PLAT_SECRET_IDENTITY_PREFIX}/${providerId}/`]
  const { SecretList = [] } = await new SecretsManagerClient().send(
    new ListSecretsCommand({ Filters: [{ Key: 'name', Values }], MaxResults: 100 }),
  )
  return SecretList.map(({ Name = '' }) => Name)
}

/** The client secret that sign-ins would use just now; undefined where there is no provider. */
export async function secretInUse(providerId: string): Promise<string | undefined> {
  const row = await findProvider(providerId)
  return row && (await secretOf(row)).clientSecret
}

/** Runs something at each call to Secrets Manager until it is disposed of. */
function onSecretCall(hook: { before: () => Promise<void>; after: () => Promise<void> }): Disposable {
  const prototype: { send: unknown } = SecretsManagerClient.prototype
  const { send } = prototype
  prototype.send = async function hooked(this: SecretsManagerClient, ...given: unknown[]) {
    await hook.before()
    const answer: unknown = await Reflect.apply(send as () => unknown, this, given)
    await hook.after()
    return answer
  }
  return { [Symbol.dispose]: () => void (prototype.send = send) }
}

const crash = () => {
  throw new Error('The process has ended.')
}

/**
 * Does some work in a process that ends at its n-th call to the store or Secrets Manager: before that is made, or before its
 * answer is heard. Answers whether it came so far.
 */
export async function crashAtCall(n: number, when: 'before' | 'after', work: () => Promise<unknown>): Promise<boolean> {
  let calls = 0
  const hook = {
    before: async () => {
      if (when === 'before' ? calls + 1 >= n : calls >= n) crash()
      calls++
    },
    after: async () => {
      if (when === 'after' && calls >= n) crash()
    },
  }
  let isCrashed = false
  {
    using stack = new DisposableStack()
    stack.use(onStoreCall(hook))
    stack.use(onSecretCall(hook))
    await work().catch(() => (isCrashed = true))
  }
  // What is done after the answer is known fails without a word.
  return isCrashed || (when === 'before' ? calls + 1 >= n : calls >= n)
}
