import * as z from 'zod'
import { id, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'

/** Maximum number of sessions in a list. */
export const sessionLimit = 100

/** An active session. It expires seven days after the last sign-in or refresh. */
export const Session = z
  .object({
    id: id('sess'),
    createdAt: timestamp,
    lastUsedAt: timestamp.meta({ description: 'Time of the last sign-in or refresh' }),
    address: z.string().max(100).meta({ description: 'IP address of the sign-in', example: '192.0.2.1' }),
    isCurrent: z.boolean().meta({ description: 'Whether this request belongs to the session', example: true }),
  })
  .meta({ id: 'Session' })

export type Session = z.infer<typeof Session>

const capabilities = ['table:read', 'table:write', 'queue:events'] as const
const common = { tags: ['Users'] } as const

export const listSessions = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/users/me/sessions',
  access: 'session',
  summary: 'The caller’s sessions, newest first',
  responses: { 200: { description: 'The newest 100 sessions at most', content: json(listOf(Session, sessionLimit)) } },
  capabilities: ['table:read'],
})

export const endSession = createRoute({
  ...common,
  method: 'delete',
  path: '/api/v1/users/me/sessions/{id}',
  access: 'session',
  summary: 'End one of the caller’s sessions',
  description:
    'Its refresh token is revoked immediately. Its access token can change nothing from now on, and can read for at most one more minute.',
  request: { params: z.object({ id: pathId('sess') }) },
  responses: { 204: { description: 'Ended' } },
  errors: ['session_not_found'],
  capabilities,
})

export const endUserSessions = createRoute({
  ...common,
  method: 'delete',
  path: '/api/v1/users/{id}/sessions',
  access: 'users:admin',
  summary: 'End all sessions of a user',
  description:
    'Refresh tokens are revoked immediately. Access tokens can change nothing from now on, and can read for at most one more minute. API tokens are not affected: see DELETE /api/v1/users/{id}/tokens.',
  request: { params: z.object({ id: pathId('user') }) },
  responses: { 204: { description: 'Ended' } },
  errors: ['user_not_found', 'conflict'],
  capabilities,
})
