import * as z from 'zod'
import { id, listOf, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** The most sessions that a list shows: the newest ones. */
export const sessionLimit = 100

/** One sign-in that has not ended. Refresh keeps it alive for another seven days. */
export const Session = z
  .object({
    id: id('sess'),
    createdAt: timestamp,
    lastUsedAt: timestamp.meta({ description: 'The last sign-in or refresh' }),
    address: z.string().max(100).meta({ description: 'Where the sign-in came from', example: '192.0.2.1' }),
    isCurrent: z.boolean().meta({ description: 'Whether this request belongs to it', example: true }),
  })
  .meta({ id: 'Session' })

export type Session = z.infer<typeof Session>

const uses = ['table:read', 'table:write', 'queue:events'] as const
const users = { tag: 'Users' } as const

export const listSessions = endpoint({
  ...users,
  method: 'GET',
  path: '/api/v1/users/me/sessions',
  access: 'user',
  summary: 'The caller’s sessions, newest first',
  responses: { 200: { description: 'At most the hundred newest', schema: listOf(Session, sessionLimit) } },
  uses: ['table:read'],
})

export const endSession = endpoint({
  ...users,
  method: 'DELETE',
  path: '/api/v1/users/me/sessions/{id}',
  access: 'user',
  summary: 'End one of the caller’s sessions',
  description: 'Its refresh token dies at once; an access token stays valid until it expires.',
  request: { params: z.object({ id: pathId('sess') }) },
  responses: { 204: { description: 'Ended' } },
  fails: ['session_not_found'],
  uses,
})

export const endUserSessions = endpoint({
  ...users,
  method: 'DELETE',
  path: '/api/v1/users/{id}/sessions',
  access: 'users:admin',
  summary: 'End all sessions of a user',
  description:
    'Refresh tokens die at once; access tokens stay valid until they expire. API tokens stay: see DELETE /api/v1/users/{id}/tokens.',
  request: { params: z.object({ id: pathId('user') }) },
  responses: { 204: { description: 'Ended' } },
  fails: ['user_not_found', 'conflict'],
  uses,
})
