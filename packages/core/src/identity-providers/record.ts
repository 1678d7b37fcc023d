import { nestedGroupModes, providerProblems, providerTypes } from '@platform/contract/identity'
import { roleNames } from '@platform/contract/permission'
import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'

/** Secrets are in Secrets Manager; the record contains only their names. */

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
  nestedGroups: z.enum(nestedGroupModes).optional(),
})
export type ProviderSettings = z.infer<typeof Settings>

export const ProviderRecord = z.object({
  /**
   * Derived from organisation, type and location, so that a provider that is removed and added again keeps its users.
   */
  id: z.string(),
  organisationId: z.string(),
  type: z.enum(providerTypes),
  displayName: z.string(),
  isEnabled: z.boolean(),
  settings: jsonString(Settings),
  roleMappings: jsonString(z.array(z.object({ group: z.string(), role: z.enum(roleNames) }))),
  defaultRole: z.enum(roleNames),
  consent: z.enum(['Pending', 'Granted', 'Denied']).optional(),
  /** The name of a secret with `ProviderSecret` as JSON. Every change of the secret uses a new name. */
  secretName: z.string(),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
  revision: z.number(),
  /** The last failure of each problem, see `parseFailures`. A change of the settings removes them. */
  failures: z.string().optional(),
})
export type ProviderRecord = z.infer<typeof ProviderRecord>

/**
 * Whether the subject is a permanent id, by which a directory finds the entry again. Other subjects are normalised
 * distinguished names.
 */
export const hasPermanentId = (subject: string | undefined): subject is string =>
  subject !== undefined && !subject.startsWith('[')

export const parseProvider = (item: Item): ProviderRecord => ProviderRecord.parse(item)

const Failures = jsonString(
  z.partialRecord(z.enum(providerProblems), z.object({ detail: z.string(), atMs: z.number() })),
)

export const parseFailures = (failures = '{}'): z.infer<typeof Failures> => Failures.parse(failures)

export const ProviderSecret = z.object({ clientSecret: z.string().optional(), bindPassword: z.string().optional() })
export type ProviderSecret = z.infer<typeof ProviderSecret>

export interface ExternalIdentity {
  /** Unique within the provider: OIDC `sub`; LDAP `entryUUID` or `objectGUID`, otherwise the distinguished name. */
  subject: string
  /** The provider's name for the user. The platform uses another name if this name is invalid or taken. */
  username: string
  displayName?: string | undefined
  email: string
  groups: readonly string[]
  /** The reason why `groups` is known to be incomplete. */
  missingGroups?: string
}
