import { type Session, sessionLimit } from '@platform/contract/session'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, orThrow } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { indexedKeys } from '../db/index-page.ts'
import { isOpen, parseSession, revokeSessionWrite, type SessionRecord } from './session.ts'
import { find, parseUser } from './user.ts'

/** A user's own sessions: listed by an index, which may lag, and ended by key. */

/** The caller's open sessions among the newest hundred. Three calls. */
export async function list({ organisationId, userId, sessionId }: Caller): Promise<{ items: Session[] }> {
  const range = { index: 'gsi1', pk: keys.userSessions(userId), newestFirst: true, limit: sessionLimit } as const
  const [user, found] = await Promise.all([find(organisationId, userId), indexedKeys(range)])
  if (user === undefined) throw platformError('unauthenticated')
  const keysFound = found.map(({ id }) => keys.session(id))
  const rows = (await getConsistent(keysFound)).filter((item) => item !== undefined).map(parseSession)
  return { items: rows.filter((row) => isOpen(row, user)).map((row) => view(row, sessionId)) }
}

const view = ({ id, createdAtMs, lastUsedAtMs, address }: SessionRecord, currentId: string): Session => ({
  id,
  createdAt: iso(createdAtMs),
  lastUsedAt: iso(lastUsedAtMs),
  address,
  isCurrent: id === currentId,
})

/** Ends one of the caller's open sessions. Two calls. */
export async function end(caller: Caller, sessionId: string): Promise<void> {
  if (!isId('sess', sessionId)) throw platformError('session_not_found')
  const { organisationId, userId } = caller
  const [user, session] = await getConsistent([keys.user(organisationId, userId), keys.session(sessionId)])
  if (user === undefined) throw platformError('unauthenticated')
  const isOpenNow = session !== undefined && isOpen(parseSession(session), parseUser(user))
  if (!isOpenNow) throw platformError('session_not_found')
  const isOwn = { userId: { is: userId } }
  await commit(caller, {
    writes: [orThrow(revokeSessionWrite(sessionId, isOwn), 'session_not_found')],
    audit: { action: 'session.revoke', resource: sessionId },
  })
}
