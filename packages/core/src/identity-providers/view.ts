import { type Provider } from '@platform/contract/identity'
import { iso } from '../clock.ts'
import { type Item } from '../db/table.ts'
import { consentRedirectUri, redirectUri } from './provider.ts'
import { type ProviderRecord } from './record.ts'

export const providerItem = ({ settings, roleMappings, ...record }: ProviderRecord): Item => ({
  ...record,
  settings: JSON.stringify(settings),
  roleMappings: JSON.stringify(roleMappings),
})

const consents = { Pending: 'ConsentPending', Granted: 'ConsentGranted', Denied: 'ConsentDenied' } as const

function statusOf({ isEnabled, consent }: ProviderRecord): Provider['status'] {
  if (!isEnabled) return 'Disabled'
  return consent === undefined ? 'Configured' : consents[consent]
}

/** `portal` is the public URL of the portal. */
export const providerView = (record: ProviderRecord, portal: string): Provider => ({
  id: record.id,
  type: record.type,
  status: statusOf(record),
  createdAt: iso(record.createdAtMs),
  updatedAt: iso(record.updatedAtMs),
  ...record.settings,
  displayName: record.displayName,
  enabled: record.isEnabled,
  roleMappings: record.roleMappings,
  defaultRole: record.defaultRole,
  ...(record.type !== 'LDAP' && {
    redirectUri: redirectUri(portal, record.id),
    consentRedirectUri: consentRedirectUri(portal),
  }),
})
