import type { Permission } from './account.ts'

/** What each permission lets one do, in plain words. */
export const permissionTexts: Readonly<Record<Permission, string>> = {
  'clusters:read': 'See clusters, nodes and sites',
  'clusters:write': 'Register and change clusters and sites, renew enrollment',
  'clusters:admin': 'Remove clusters',
  'jobs:read': 'See jobs and their output',
  'jobs:write': 'Run and cancel jobs',
  'modules:read': 'See and use modules',
  'modules:install': 'Install and remove modules',
  'users:admin': 'Administer users and webhooks',
  'audit:read': 'Read the audit trail',
  'platform:admin': 'Administer the platform: organisations, identity providers, updates',
}
