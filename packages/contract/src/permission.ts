/** The permissions that roles grant. */
export const permissions = [
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
] as const

/** One permission. `admin` ⊃ `write` ⊃ `read` holds because each role lists what it includes. */
export type Permission = (typeof permissions)[number]

/** Whether a name is a permission; tells the accesses `public`, `user` and `relay` from the others. */
export const isPermission = (name: string): name is Permission => permissions.some((permission) => permission === name)

const reader = ['clusters:read', 'jobs:read', 'modules:read'] as const
const operator = [...reader, 'jobs:write'] as const
const clusterAdmin = [...operator, 'clusters:write', 'clusters:admin'] as const
const orgAdmin = [...clusterAdmin, 'users:admin', 'audit:read'] as const

/** The roles that the platform knows. */
export const roleNames = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'] as const

/** The name of a role that the platform knows. */
export type Role = (typeof roleNames)[number]

/** Role → permissions. PlatformAdmin exists in the platform organisation only. */
const roles = {
  PlatformAdmin: permissions,
  OrgAdmin: orgAdmin,
  ClusterAdmin: clusterAdmin,
  Operator: operator,
  Viewer: reader,
  Auditor: [...reader, 'audit:read'],
} as const satisfies Record<Role, readonly Permission[]>

const isRole = (name: string): name is Role => Object.hasOwn(roles, name)

/** All permissions that the named roles grant together; an unknown role grants nothing. */
export function permissionsOf(roleNames: readonly string[]): Permission[] {
  const granted = new Set<Permission>(roleNames.filter(isRole).flatMap((name) => roles[name]))
  return permissions.filter((permission) => granted.has(permission))
}
