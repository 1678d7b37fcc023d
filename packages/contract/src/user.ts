import * as z from 'zod'
import { UserProfile } from './auth.ts'
import { listOf, pageOf, paging, pathId } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { permissions, roleNames } from './permission.ts'
import { email, password, username } from './setup.ts'

const roles = z
  .array(z.enum(roleNames))
  .min(1)
  .max(roleNames.length)
  .meta({ example: ['Operator'] })

/** A user to create or, with `organisationId`, an OrgAdmin of another organisation that has no local administrator. */
export const UserCreation = z
  .strictObject({
    username: username.meta({ example: 'ada' }),
    email,
    password,
    roles,
    organisationId: z.string().max(200).optional().meta({
      description:
        'Another organisation, which has no administrator with a local account; requires platform:admin and the role OrgAdmin',
    }),
  })
  .meta({ id: 'UserCreation' })

export const UserUpdate = z
  .strictObject({
    email: email.optional(),
    roles: roles.optional(),
    password: password.optional().meta({
      description:
        'New password of another user, with the same rules as at creation. Ends all sessions of the user and revokes its API tokens. Not allowed with an API token.',
    }),
  })
  .meta({ id: 'UserUpdate' })

export const PasswordChange = z
  .strictObject({
    currentPassword: z.string().min(1).max(1024).meta({ format: 'password', example: 'correct horse battery' }),
    newPassword: password.meta({ example: 'a longer sentence than before' }),
    revokeTokensSince: z.iso.datetime({ offset: true }).max(40).optional().meta({
      description: 'Also revoke the caller’s API tokens that were created at or after this time; default: none',
      example: '2026-11-01T00:00:00.000Z',
    }),
  })
  .meta({ id: 'PasswordChange' })

/** A role, its permissions, and whether the caller can assign it. */
export const RoleDescription = z
  .object({
    name: z.enum(roleNames),
    permissions: z.array(z.enum(permissions)).max(permissions.length),
    grantable: z.boolean().meta({ description: 'Whether the caller can assign it to users of its organisation' }),
  })
  .meta({ id: 'RoleDescription' })
export type RoleDescription = z.infer<typeof RoleDescription>

export type UserCreation = z.infer<typeof UserCreation>
export type UserUpdate = z.infer<typeof UserUpdate>
export type PasswordChange = z.infer<typeof PasswordChange>

const common = { access: 'users:admin', tags: ['Users'] } as const
const params = z.object({ id: pathId('user') })

export const changePassword = createRoute({
  method: 'put',
  path: '/api/v1/users/me/password',
  access: 'user',
  tags: ['Users'],
  summary: 'Change the caller’s password',
  description:
    'Ends all other sessions of the caller. API tokens stay valid unless `revokeTokensSince` is given: after a theft, revoke those created since then. A wrong password counts as a failed sign-in.',
  request: { body: jsonBody(PasswordChange) },
  responses: { 204: { description: 'Changed' } },
  errors: ['invalid_credentials', 'account_not_local', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const listUsers = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/users',
  summary: 'The users of the organisation, newest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of users', content: json(pageOf(UserProfile)) } },
  capabilities: ['table:read'],
})

export const listRoles = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/roles',
  summary: 'The roles and their permissions',
  responses: {
    200: { description: 'All roles', content: json(listOf(RoleDescription, 20)) },
  },
})

export const createUser = createRoute({
  ...common,
  method: 'post',
  path: '/api/v1/users',
  summary: 'Create a user with a local account',
  description:
    'Callers can grant only permissions that they have. PlatformAdmin exists in the platform organisation only. A platform administrator can create an OrgAdmin of another organisation that has no administrator with a local account. If the organisation has users, they are notified, and both audit trails record `organisation.recover`.',
  request: { body: jsonBody(UserCreation) },
  responses: { 201: { description: 'The user', content: json(UserProfile) } },
  errors: [
    'username_taken',
    'organisation_not_found',
    'organisation_has_users',
    'role_not_grantable',
    'limit_reached',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const getUser = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/users/{id}',
  summary: 'One user of the organisation',
  request: { params },
  responses: { 200: { description: 'The user', content: json(UserProfile) } },
  errors: ['user_not_found'],
  capabilities: ['table:read'],
})

export const updateUser = createRoute({
  ...common,
  method: 'patch',
  path: '/api/v1/users/{id}',
  summary: 'Change a user’s e-mail, roles or password',
  description:
    'New roles apply from the user’s next refresh, and to API tokens immediately. Returns 403 if the user has more permissions than the caller, and 409 if an identity provider manages the user.',
  request: { params, body: jsonBody(UserUpdate) },
  responses: { 200: { description: 'The user', content: json(UserProfile) } },
  errors: ['user_not_found', 'role_not_grantable', 'last_administrator', 'account_not_local', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const deleteUser = createRoute({
  ...common,
  method: 'delete',
  path: '/api/v1/users/{id}',
  summary: 'Remove a user',
  description:
    'Frees the name and revokes API tokens immediately. Sessions can change nothing from now on, and can read for at most one more minute. Returns 403 if the user has more permissions than the caller.',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  errors: ['user_not_found', 'last_administrator', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
