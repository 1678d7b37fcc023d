import { isPermission, permissions, permissionsOf, roleNames } from '@platform/contract/permission'
import { expect, test } from 'vitest'

/** Which role may do what, written by hand. */
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

test('there are these roles and no other', () => {
  expect([...roleNames]).toEqual(Object.keys(granted))
})

test.each(Object.entries(granted))('%s may do exactly this', (role, expected) => {
  expect(permissionsOf([role])).toEqual(expected)
})

test('roles together grant what each of them does, once', () => {
  expect(permissionsOf(['Auditor', 'Operator', 'Viewer'])).toEqual([
    'clusters:read',
    'jobs:read',
    'jobs:write',
    'modules:read',
    'audit:read',
  ])
})

test.each([[], ['Nobody'], ['orgadmin'], ['constructor'], ['__proto__'], ['toString', '']])(
  'nobody may do anything by %s %s',
  (...names) => {
    expect(permissionsOf(names)).toEqual([])
  },
)

test('an unknown role takes nothing from a known one', () => {
  expect(permissionsOf(['Nobody', 'Viewer', 'constructor'])).toEqual(granted['Viewer'])
})

test('permissions are told from other kinds of access', () => {
  expect([...permissions]).toEqual(granted['PlatformAdmin'])
  for (const permission of permissions) expect(isPermission(permission)).toBe(true)
  for (const access of ['public', 'user', 'session', 'relay', '', 'jobs', 'jobs:', 'Jobs:read']) {
    expect(isPermission(access)).toBe(false)
  }
})
