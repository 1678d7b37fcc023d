import { type Provider } from '@platform/contract/identity'
import { iso } from '../clock.ts'
import { type Item } from '../db/table.ts'
import { consentRedirectUri, redirectUri } from './provider.ts'
import { type ProviderRecord } from './record.ts'

/** A provider as stored. */

export const providerItem = ({ settings, roleMappings, ...row }: ProviderRecord): Item => ({
  ...row,
  settings: JSON.stringify(settings),
  roleMappings: JSON.stringify(roleMappings),
})

const consents = { Pending: 'ConsentPending', Granted: 'ConsentGranted', Denied: 'ConsentDenied' } as const

function statusOf({ isEnabled, consent }: ProviderRecord): Provider['status'] {
  if (!isEnabled) return 'Disabled'
  return consent === undefined ? 'Configured' : consents[consent]
}

/** The API representation of a provider; `portal` is the portal's public URL. Records contain no secrets. */
export const providerView = (row: ProviderRecord, portal: string): Provider => ({
  id: row.id,
  type: row.type,
  status: statusOf(row),
  createdAt: iso(row.createdAtMs),
  updatedAt: iso(row.updatedAtMs),
  ...row.settings,
  displayName: row.displayName,
  enabled: row.isEnabled,
  roleMappings: row.roleMappings,
  defaultRole: row.defaultRole,
  ...(row.type !== 'LDAP' && {
    redirectUri: redirectUri(portal, row.id),
    consentRedirectUri: consentRedirectUri(portal),
  }),
})
