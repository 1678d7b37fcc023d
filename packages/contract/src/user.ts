import * as z from 'zod'
import { UserProfile } from './auth.ts'
import { listOf, pageOf, paging, pathId } from './common.ts'
import { endpoint } from './endpoint.ts'
import { permissions, roleNames } from './permission.ts'
import { password, username } from './setup.ts'

const email = z.email().max(254).meta({ example: 'ada@example.com' })
const roles = z
  .array(z.enum(roleNames))
  .min(1)
  .max(roleNames.length)
  .meta({ example: ['Operator'] })

/** What makes a user (D56). `organisationId` seeds the first OrgAdmin of another organisation (D15). */
export const UserCreation = z
  .object({
    username: username.meta({ example: 'ada' }),
    email,
    password,
    roles,
    organisationId: z
      .string()
      .max(200)
      .optional()
      .meta({ description: 'Another organisation that has no user yet; needs platform:admin' }),
  })
  .meta({ id: 'UserCreation' })

export const UserUpdate = z
  .object({
    email: email.optional(),
    roles: roles.optional(),
    password: password.optional().meta({
      description: 'Of somebody else. Ends all sessions of the user and revokes its API tokens. Not by an API token.',
    }),
  })
  .meta({ id: 'UserUpdate' })

export const PasswordChange = z
  .object({
    currentPassword: z.string().min(1).max(1024).meta({ format: 'password', example: 'correct horse battery' }),
    newPassword: password.meta({ example: 'a longer sentence than before' }),
  })
  .meta({ id: 'PasswordChange' })

/** A role, and what whoever holds it may do (D14). */
export const RoleDescription = z
  .object({
    name: z.enum(roleNames),
    permissions: z.array(z.enum(permissions)).max(permissions.length),
    grantable: z.boolean().meta({ description: 'Whether the caller may give it to users of the own organisation' }),
  })
  .meta({ id: 'RoleDescription' })
export type RoleDescription = z.infer<typeof RoleDescription>

export type UserCreation = z.infer<typeof UserCreation>
export type UserUpdate = z.infer<typeof UserUpdate>
export type PasswordChange = z.infer<typeof PasswordChange>

const users = { access: 'users:admin', tag: 'Users' } as const
const params = z.object({ id: pathId('user') })

export const changePassword = endpoint({
  method: 'PUT',
  path: '/api/v1/users/me/password',
  access: 'user',
  tag: 'Users',
  summary: 'Change the own password',
  description: 'Ends all other sessions of the caller; API tokens stay. A wrong password counts as a failed sign-in.',
  request: { body: PasswordChange },
  responses: { 204: { description: 'Changed' } },
  fails: ['invalid_credentials', 'account_not_local', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

export const listUsers = endpoint({
  ...users,
  method: 'GET',
  path: '/api/v1/users',
  summary: 'The users of the organisation, newest first',
  request: { query: z.object(paging) },
  responses: { 200: { description: 'A page of users', schema: pageOf(UserProfile) } },
  uses: ['table:read'],
})

export const listRoles = endpoint({
  ...users,
  method: 'GET',
  path: '/api/v1/roles',
  summary: 'The roles that users can have',
  responses: { 200: { description: 'The roles, the mightiest first', schema: listOf(RoleDescription, 20) } },
})

export const createUser = endpoint({
  ...users,
  method: 'POST',
  path: '/api/v1/users',
  summary: 'Create a user with a local account',
  description:
    'Nobody grants more than the own rights. PlatformAdmin exists in the platform organisation only. A platform administrator may seed another organisation that has no user, with an OrgAdmin.',
  request: { body: UserCreation },
  responses: { 201: { description: 'The user', schema: UserProfile } },
  fails: ['username_taken', 'organisation_not_found', 'organisation_has_users', 'role_not_grantable', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

export const getUser = endpoint({
  ...users,
  method: 'GET',
  path: '/api/v1/users/{id}',
  summary: 'One user of the organisation',
  request: { params },
  responses: { 200: { description: 'The user', schema: UserProfile } },
  fails: ['user_not_found'],
  uses: ['table:read'],
})

export const updateUser = endpoint({
  ...users,
  method: 'PATCH',
  path: '/api/v1/users/{id}',
  summary: 'Change a user’s e-mail, roles or password',
  description:
    'Roles count from the user’s next refresh on, and at once for API tokens. A user with more rights than the caller cannot be changed: 403; one of an identity provider is changed there: 409.',
  request: { params, body: UserUpdate },
  responses: { 200: { description: 'The user', schema: UserProfile } },
  fails: ['user_not_found', 'role_not_grantable', 'last_administrator', 'account_not_local', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

export const deleteUser = endpoint({
  ...users,
  method: 'DELETE',
  path: '/api/v1/users/{id}',
  summary: 'Remove a user',
  description:
    'The name is free again, API tokens die at once, sessions at their next refresh. A user with more rights than the caller cannot be removed: 403.',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  fails: ['user_not_found', 'last_administrator', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})
