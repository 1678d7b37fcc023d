import { type Provider, providerProblems } from '@platform/contract/identity'
import { iso } from '../clock.ts'
import type { Item } from '../db/table.ts'
import { consentRedirectUri, redirectUri } from './provider.ts'
import { parseFailures, type ProviderRecord } from './record.ts'

export const providerItem = ({ settings, roleMappings, ...record }: ProviderRecord): Item => ({
  ...record,
  settings: JSON.stringify(settings),
  roleMappings: JSON.stringify(roleMappings),
})

const consentStatuses = { Pending: 'ConsentPending', Granted: 'ConsentGranted', Denied: 'ConsentDenied' } as const

function statusOf({ isEnabled, consent }: ProviderRecord): Provider['status'] {
  if (!isEnabled) return 'Disabled'
  return consent === undefined ? 'Configured' : consentStatuses[consent]
}

function lastFailureOf({ failures }: ProviderRecord): Pick<Provider, 'lastFailure'> {
  const knownFailures = parseFailures(failures)
  const [last] = providerProblems
    .flatMap((problem) => (knownFailures[problem] === undefined ? [] : [{ problem, ...knownFailures[problem] }]))
    .toSorted((a, b) => b.atMs - a.atMs)
  return last === undefined ? {} : { lastFailure: { problem: last.problem, detail: last.detail, at: iso(last.atMs) } }
}

export const providerView = (record: ProviderRecord, portalUrl: string): Provider => ({
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
  ...lastFailureOf(record),
  ...(record.type !== 'LDAP' && {
    redirectUri: redirectUri(portalUrl, record.id),
    consentRedirectUri: consentRedirectUri(portalUrl),
  }),
})
