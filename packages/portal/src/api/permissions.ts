import type { Permission } from './account.ts'

export const permissionTexts: Readonly<Record<Permission, string>> = {
  'clusters:read': 'View clusters, nodes and sites',
  'clusters:write': 'Register and edit clusters and sites, issue enrollment tokens',
  'clusters:admin': 'Remove clusters',
  'jobs:read': 'View jobs and their output',
  'jobs:write': 'Run and cancel jobs',
  'modules:read': 'View and use modules',
  'modules:install': 'Install and remove modules',
  'users:admin': 'Manage users and webhooks',
  'audit:read': 'Read the audit trail',
  'platform:admin': 'Manage the platform: organisations, identity providers, updates',
}
