import { providerTypes } from '@platform/contract/identity'
import { roleNames } from '@platform/contract/permission'
import * as z from 'zod'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/json.ts'

/** How identity providers are stored (D41). Their secrets are not: the row names the secret that holds them. */

/** What the type needs, as `ProviderRequest` names it, with the defaults filled in. */
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
  /** Derived of organisation, type and place: whoever removes a provider and adds it again finds its users again. */
  id: z.string(),
  organisationId: z.string(),
  type: z.enum(providerTypes),
  displayName: z.string(),
  isEnabled: z.boolean(),
  settings: jsonString(Settings),
  roleMappings: jsonString(z.array(z.object({ group: z.string(), role: z.enum(roleNames) }))),
  defaultRole: z.enum(roleNames),
  consent: z.enum(['Pending', 'Granted', 'Denied']).optional(),
  /** Of the secret in Secrets Manager that holds `ProviderSecret` as JSON; each change of it has a name of its own. */
  secretName: z.string(),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
  /** Goes up with every change. */
  revision: z.number(),
})
export type ProviderRecord = z.infer<typeof ProviderRecord>

export const parseProvider = (item: Item): ProviderRecord => ProviderRecord.parse(item)

/** What is kept in Secrets Manager of a provider. */
export const ProviderSecret = z.object({ clientSecret: z.string().optional(), bindPassword: z.string().optional() })
export type ProviderSecret = z.infer<typeof ProviderSecret>

/** Somebody whom a provider vouches for. */
export interface ExternalIdentity {
  /** Of the provider, and never somebody else's there: OIDC `sub`; LDAP `entryUUID`, else the distinguished name. */
  subject: string
  /** As the provider calls the person; the name here may differ, where somebody has it already. */
  username: string
  email: string
  groups: readonly string[]
}
