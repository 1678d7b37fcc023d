import { isPermission, permissions, permissionsOf, roleNames } from '@platform/contract/permission'
import { expect, test } from 'vitest'

const granted: Record<string, readonly string[]> = {
  PlatformAdmin: [
    'clusters:read',
    'clusters:write',
    'clusters:admin',
    'jobs:read',
    'jobs:write',
    'modules:read',
    'modules:install',
    'users:admin',
    'audit:read',
    'platform:admin',
  ],
  OrgAdmin: [
    'clusters:read',
    'clusters:write',
    'clusters:admin',
    'jobs:read',
    'jobs:write',
    'modules:read',
    'users:admin',
    'audit:read',
  ],
  ClusterAdmin: ['clusters:read', 'clusters:write', 'clusters:admin', 'jobs:read', 'jobs:write', 'modules:read'],
  Operator: ['clusters:read', 'jobs:read', 'jobs:write', 'modules:read'],
  Viewer: ['clusters:read', 'jobs:read', 'modules:read'],
  Auditor: ['clusters:read', 'jobs:read', 'modules:read', 'audit:read'],
}

test('the roles are exactly those of this table', () => {
  expect([...roleNames]).toEqual(Object.keys(granted))
})

test.each(Object.entries(granted))('%s has exactly these permissions', (role, expected) => {
  expect(permissionsOf([role])).toEqual(expected)
})

test('several roles grant the union of their permissions', () => {
  expect(permissionsOf(['Auditor', 'Operator', 'Viewer'])).toEqual([
    'clusters:read',
    'jobs:read',
    'jobs:write',
    'modules:read',
    'audit:read',
  ])
})

test.each([[], ['Unknown'], ['orgadmin'], ['constructor'], ['__proto__'], ['toString', '']])(
  'unknown roles grant nothing: %s %s',
  (...names) => {
    expect(permissionsOf(names)).toEqual([])
  },
)

test('an unknown role does not reduce the permissions of a known one', () => {
  expect(permissionsOf(['Unknown', 'Viewer', 'constructor'])).toEqual(granted['Viewer'])
})

test('distinguishes permissions from other access levels', () => {
  expect([...permissions]).toEqual(granted['PlatformAdmin'])
  for (const permission of permissions) expect(isPermission(permission)).toBe(true)
  for (const access of ['public', 'user', 'session', 'relay', '', 'jobs', 'jobs:', 'Jobs:read']) {
    expect(isPermission(access)).toBe(false)
  }
})
