import { randomUUID } from 'node:crypto'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import {
  type ExternalIdentity,
  type ProviderRecord,
  parseProvider,
  type ProviderSecret,
} from '@platform/core/identity-providers/record'
import { writeSecret } from '@platform/core/aws/secrets'
import { verifyAccessToken } from '@platform/core/signing/access-token'

export async function storeProvider(
  organisationId: string,
  fields: Partial<Omit<ProviderRecord, 'settings'>> & { settings?: object } = {},
  secret: ProviderSecret = {},
): Promise<ProviderRecord> {
  const secretName = `identity/${randomUUID()}`
  const { settings = {}, roleMappings = [], ...others } = fields
  const row = {
    id: newId('idp'),
    organisationId,
    type: 'OIDC',
    displayName: 'Provider',
    isEnabled: true,
    defaultRole: 'Viewer',
    secretName,
    createdAtMs: now(),
    updatedAtMs: now(),
    revision: 1,
    ...others,
  }
  const item = { ...row, settings: JSON.stringify(settings), roleMappings: JSON.stringify(roleMappings) }
  await writeSecret(secretName, JSON.stringify(secret))
  await transact([replace(keys.identityProvider(row.id), item)])
  return parseProvider(item)
}

export async function setProviderEnabled({ id }: ProviderRecord, isEnabled: boolean): Promise<void> {
  await transact([patch(keys.identityProvider(id), { set: { isEnabled }, add: { revision: 1 } })])
}

export async function removeProvider({ id }: ProviderRecord): Promise<void> {
  await transact([remove(keys.identityProvider(id))])
}

export async function removeAllProviders(): Promise<void> {
  const { items } = await query(keys.identityProviders())
  for (const item of items) await transact([remove(keys.identityProvider(String(item['sk'])))])
}

export const externalIdentity = (fields: Partial<ExternalIdentity> = {}): ExternalIdentity => {
  const name = `x-${randomUUID()}`
  return { subject: randomUUID(), username: name, email: `${name}@example.com`, groups: [], ...fields }
}

export const callerOfTokens = async ({ accessToken }: { accessToken: string }) => verifyAccessToken(accessToken)
