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

/** A permission. Each role lists all of its permissions, so that `admin` ⊃ `write` ⊃ `read`. */
export type Permission = (typeof permissions)[number]

/** Whether a name is a permission, and not `public`, `user` or `relay`. */
export const isPermission = (name: string): name is Permission => permissions.some((permission) => permission === name)

const reader = ['clusters:read', 'jobs:read', 'modules:read'] as const
const operator = [...reader, 'jobs:write'] as const
const clusterAdmin = [...operator, 'clusters:write', 'clusters:admin'] as const
const orgAdmin = [...clusterAdmin, 'users:admin', 'audit:read'] as const

/** The known roles. */
export const roleNames = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'] as const

export type Role = (typeof roleNames)[number]

/** Role → permissions. PlatformAdmin exists only in the platform organisation. */
const roles = {
  PlatformAdmin: permissions,
  OrgAdmin: orgAdmin,
  ClusterAdmin: clusterAdmin,
  Operator: operator,
  Viewer: reader,
  Auditor: [...reader, 'audit:read'],
} as const satisfies Record<Role, readonly Permission[]>

const isRole = (name: string): name is Role => Object.hasOwn(roles, name)

/** All permissions that these roles grant together. An unknown role grants nothing. */
export function permissionsOf(roleNames: readonly string[]): Permission[] {
  const granted = new Set<Permission>(roleNames.filter(isRole).flatMap((name) => roles[name]))
  return permissions.filter((permission) => granted.has(permission))
}
