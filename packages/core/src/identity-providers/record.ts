import { providerTypes } from '@platform/contract/identity'
import { roleNames } from '@platform/contract/permission'
import * as z from 'zod'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'

/** The stored form of identity providers. Secrets are in Secrets Manager; the record contains their names. */

/** The settings of all types, as in `ProviderRequest`. */
const Settings = z.object({
  tenantId: z.string().optional(),
  clientId: z.string().optional(),
  authorityHost: z.string().optional(),
  issuer: z.string().optional(),
  baseUrl: z.string().optional(),
  realm: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  usernameClaim: z.string().optional(),
  emailClaim: z.string().optional(),
  groupsClaim: z.string().optional(),
  url: z.string().optional(),
  bindDn: z.string().optional(),
  userSearchBase: z.string().optional(),
  startTls: z.boolean().optional(),
  caCertificate: z.string().optional(),
  userLoginAttribute: z.string().optional(),
  groupSearchBase: z.string().optional(),
  groupMemberAttribute: z.string().optional(),
})
export type ProviderSettings = z.infer<typeof Settings>

export const ProviderRecord = z.object({
  /** Derived from organisation, type and location: a provider that is removed and added again keeps its users. */
  id: z.string(),
  organisationId: z.string(),
  type: z.enum(providerTypes),
  displayName: z.string(),
  isEnabled: z.boolean(),
  settings: jsonString(Settings),
  roleMappings: jsonString(z.array(z.object({ group: z.string(), role: z.enum(roleNames) }))),
  defaultRole: z.enum(roleNames),
  consent: z.enum(['Pending', 'Granted', 'Denied']).optional(),
  /** The secret in Secrets Manager with `ProviderSecret` as JSON; every change uses a new name. */
  secretName: z.string(),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
  /** Incremented by every change. */
  revision: z.number(),
})
export type ProviderRecord = z.infer<typeof ProviderRecord>

export const parseProvider = (item: Item): ProviderRecord => ProviderRecord.parse(item)

export const ProviderSecret = z.object({ clientSecret: z.string().optional(), bindPassword: z.string().optional() })
export type ProviderSecret = z.infer<typeof ProviderSecret>

/** A user as a provider reports it. */
export interface ExternalIdentity {
  /** Unique and never reassigned within the provider: OIDC `sub`; LDAP `entryUUID`, else the distinguished name. */
  subject: string
  /** The provider's name for the user. The platform's name differs if this one is taken. */
  username: string
  email: string
  groups: readonly string[]
}
