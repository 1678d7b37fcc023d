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

/** A permission that roles grant. Roles list all their permissions; `admin` does not imply `write` or `read`. */
export type Permission = (typeof permissions)[number]

/** Whether a name is a permission. `public`, `user`, `session` and `relay` are not. */
export const isPermission = (name: string): name is Permission => permissions.some((permission) => permission === name)

const readerPermissions = ['clusters:read', 'jobs:read', 'modules:read'] as const
const operatorPermissions = [...readerPermissions, 'jobs:write'] as const
const clusterAdminPermissions = [...operatorPermissions, 'clusters:write', 'clusters:admin'] as const
const orgAdminPermissions = [...clusterAdminPermissions, 'users:admin', 'audit:read'] as const

export const roleNames = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'] as const

export type Role = (typeof roleNames)[number]

// Only users of the platform organisation can have the role PlatformAdmin.
const roles = {
  PlatformAdmin: permissions,
  OrgAdmin: orgAdminPermissions,
  ClusterAdmin: clusterAdminPermissions,
  Operator: operatorPermissions,
  Viewer: readerPermissions,
  Auditor: [...readerPermissions, 'audit:read'],
} as const satisfies Record<Role, readonly Permission[]>

const isRole = (name: string): name is Role => Object.hasOwn(roles, name)

/** Returns the permissions that the roles grant together. An unknown role grants none. */
export function permissionsOf(roleNames: readonly string[]): Permission[] {
  const grantedPermissions = new Set<Permission>(roleNames.filter(isRole).flatMap((name) => roles[name]))
  return permissions.filter((permission) => grantedPermissions.has(permission))
}
