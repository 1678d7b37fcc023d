import { timingSafeEqual } from 'node:crypto'
import { type Credentials, refreshTokenSeconds, type TokenSet } from '@platform/contract/auth'
import * as z from 'zod'
import { type Caller, type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { type Attempt, beginAttempt, comparePassword } from './credential.ts'
import { type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, getConsistent, type Item, orThrow, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { isId, newId, newSecret, sha256 } from '../id.ts'
import { accessTokenSeconds, issueAccessToken } from '../signing/access-token.ts'
import { find, parseUser, type User } from './user.ts'
import { isProviderEnabled } from './provider-status.ts'

/** Sessions (D4): one sign-in is one family of refresh tokens. Each works once; a second use ends the family. */

const refreshTokenMs = refreshTokenSeconds * 1000
/** Used tokens are remembered past their expiry, so that a second use is still recognised. */
const ttlOf = (expiresAtMs: number): number => Math.ceil(expiresAtMs / 1000) + 24 * 3600

const Row = z.object({
  id: z.string(),
  userId: z.string(),
  organisationId: z.string(),
  address: z.string(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number(),
  epoch: z.number(),
  revokedAtMs: z.number().optional(),
})
/** One sign-in, as it is stored. */
export type SessionRecord = z.infer<typeof Row>

export const parseSession = (item: Item): SessionRecord => Row.parse(item)

const RefreshToken = z.object({ hash: z.string(), expiresAtMs: z.number(), usedAtMs: z.number().optional() })

interface Family {
  sessionId: string
  userId: string
  organisationId: string
  roles: readonly string[]
}

const tokenSet = async (family: Family, refreshToken: string): Promise<TokenSet> => ({
  accessToken: await issueAccessToken(family),
  refreshToken,
  expiresIn: accessTokenSeconds,
  tokenType: 'Bearer',
})

/** A fresh refresh token of a session, as text and as the step that stores its hash. */
function mintRefreshToken(sessionId: string, atMs: number) {
  const tokenId = newSecret().slice(0, 12)
  const secret = newSecret()
  const expiresAtMs = atMs + refreshTokenMs
  const item = { hash: sha256(secret), expiresAtMs, ttl: ttlOf(expiresAtMs) }
  return { text: `${sessionId}.${tokenId}.${secret}`, step: create(keys.refreshToken(sessionId, tokenId), item) }
}

/** Whether a session lives on: it was neither ended by itself nor with its user's others, and was used within seven days. */
export const isOpen = (session: SessionRecord, { epoch, keptSessionId }: User): boolean =>
  session.revokedAtMs === undefined &&
  session.lastUsedAtMs + refreshTokenMs > now() &&
  (session.epoch === epoch || session.id === keptSessionId)

/**
 * Steps that open a session for a user, and its tokens, which are worth nothing before. They are signed first: where that
 * cannot be done nothing has happened. `epoch` is that of its credential.
 */
export function open(
  user: Pick<User, 'id' | 'organisationId' | 'roles'>,
  { address }: Origin = { address: '' },
  epoch = 0,
) {
  const sessionId = newId('sess')
  const { id: userId, organisationId, roles } = user
  const createdAtMs = now()
  const token = mintRefreshToken(sessionId, createdAtMs)
  const times = { createdAtMs, lastUsedAtMs: createdAtMs, ttl: ttlOf(createdAtMs + refreshTokenMs) }
  const row: SessionRecord = { id: sessionId, userId, organisationId, address, epoch, ...times }
  const session = { ...row, gsi1pk: keys.userSessions(userId) }
  return {
    id: sessionId,
    steps: [create(keys.session(sessionId), session), token.step],
    tokens: () => tokenSet({ sessionId, userId, organisationId, roles }, token.text),
  }
}

/**
 * Signs in with a local account. Three calls: name, user, session; the first two tell of failures, too.
 * Throws `invalid_credentials`, or `rate_limited` after too many failures in one minute (D34).
 */
export const signIn = async ({ username, password }: Credentials, origin: Origin): Promise<TokenSet> =>
  signInLocally(await beginAttempt(username, origin), password, origin)

/** The same for an attempt that has begun. Two calls. */
export async function signInLocally(attempt: Attempt, password: string, origin: Origin): Promise<TokenSet> {
  const { epoch, user: item } = await comparePassword(attempt, password)
  if (item === undefined) throw platformError('invalid_credentials')
  const user = parseUser(item)
  const session = open(user, origin, epoch)
  const tokens = await session.tokens()
  await commit(signingInCaller(user, origin), {
    steps: session.steps.map((step) => orThrow(step, 'conflict')),
    ...sessionOpenedEffects(user, session.id),
  })
  return tokens
}

/** What the opening of a session tells. */
export const sessionOpenedEffects = ({ id, username }: User, sessionId: string) => ({
  audit: { action: 'session.open', resource: sessionId },
  events: [{ name: 'user.signed_in' as const, subject: id, data: { userId: id, username, sessionId } }],
})

/** A user that is signing in, as who makes the change. */
export const signingInCaller = (
  { id, organisationId }: Pick<User, 'id' | 'organisationId'>,
  { address }: Origin,
): Caller => ({
  kind: 'user',
  userId: id,
  organisationId,
  sessionId: '',
  permissions: new Set(),
  address,
})

/**
 * Trades a refresh token for a new set. Three calls, four for a user of an identity provider; where that is disabled or gone
 * the session ends. A token that was used before, even at the same moment, ends the session, too: of two users of one token
 * the platform cannot tell which is the thief (RFC 9700).
 */
export async function refresh({ refreshToken }: { refreshToken: string }, origin?: Origin): Promise<TokenSet> {
  const known = await findByToken(refreshToken)
  if (known === undefined) throw platformError('invalid_refresh_token')
  const { session, token, tokenKey } = known
  const sessionId = session.id
  const family = { sessionId, ...session }
  if (token.usedAtMs !== undefined) return endFamily(family, origin)
  if (token.expiresAtMs <= now()) throw platformError('invalid_refresh_token')

  // Read after the session: whatever has ended it together with others stands here.
  const user = await find(session.organisationId, session.userId)
  if (user === undefined || !isOpen(session, user)) throw platformError('invalid_refresh_token')
  if (!(await isProviderEnabled(user))) return endUnvouched(family, origin)
  const atMs = now()
  const successor = mintRefreshToken(sessionId, atMs)
  // Signed before the old token is used up: where keys cannot be had just now, it stays good.
  const tokens = await tokenSet({ sessionId, ...session, roles: user.roles }, successor.text)
  const used = { set: { lastUsedAtMs: atMs, ttl: ttlOf(atMs + refreshTokenMs) } }
  const refusal = await transact([
    patch(tokenKey, { set: { usedAtMs: atMs } }, { usedAtMs: { absent: true } }),
    patch(keys.session(sessionId), used, { revokedAtMs: { absent: true } }),
    successor.step,
  ])
  if (refusal?.step === 0) return endFamily(family, origin)
  if (refusal) throw platformError('invalid_refresh_token')
  return tokens
}

/** The session of a refresh token that is genuine, used or not, unless it has ended. One call. */
async function findByToken(refreshToken: string) {
  const [sessionId = '', tokenId = '', secret = '', ...more] = refreshToken.split('.')
  if (!isId('sess', sessionId) || !/^[\w-]{12}$/.test(tokenId) || more.length > 0) return undefined
  const tokenKey = keys.refreshToken(sessionId, tokenId)
  const [sessionItem, tokenItem] = await getConsistent([keys.session(sessionId), tokenKey])
  if (sessionItem === undefined || tokenItem === undefined) return undefined
  const session = parseSession(sessionItem)
  const token = RefreshToken.parse(tokenItem)
  const isGenuine = timingSafeEqual(Buffer.from(token.hash), Buffer.from(sha256(secret)))
  return isGenuine && session.revokedAtMs === undefined ? { session, token, tokenKey } : undefined
}

async function endFamily(
  { sessionId, userId, organisationId }: Omit<Family, 'roles'>,
  origin?: Origin,
): Promise<never> {
  await commit(system(organisationId, origin?.address), {
    steps: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: 'A refresh token was used twice' },
    events: [{ name: 'session.reuse_detected', subject: sessionId, data: { userId, sessionId } }],
  })
  throw platformError('invalid_refresh_token')
}

async function endUnvouched({ sessionId, organisationId }: Omit<Family, 'roles'>, origin?: Origin): Promise<never> {
  await commit(system(organisationId, origin?.address), {
    steps: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: 'The identity provider is disabled or gone' },
  })
  throw platformError('invalid_refresh_token')
}

/** The step that ends a session; refused where it has ended already, or the store has forgotten it. */
export function revokeSessionWrite(sessionId: string, condition: Condition = {}): WriteItem {
  const revokedAtMs = now()
  const set = { revokedAtMs, ttl: ttlOf(revokedAtMs + refreshTokenMs) }
  const isAlive = { revokedAtMs: { absent: true } } as const
  return patch(keys.session(sessionId), { set, remove: ['gsi1pk'] }, { ...isAlive, ...condition })
}

/** Ends the caller's session: all its refresh tokens die, the access token lives until it expires. One call. */
export async function signOut(caller: Caller): Promise<void> {
  if (caller.sessionId === '') return
  const { sessionId } = caller
  await commit(caller, {
    steps: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.close', resource: sessionId },
  })
}

/**
 * Ends the session that a refresh token belongs to, for whoever holds it: a used one and an expired one, too. Where there is no
 * such session, or no more, nothing happens. Two calls.
 */
export async function endSessionByToken(refreshToken: string, origin: Origin): Promise<void> {
  const known = await findByToken(refreshToken)
  if (known === undefined) return
  const { id: sessionId, userId, organisationId } = known.session
  await signOut({ ...signingInCaller({ id: userId, organisationId }, origin), sessionId })
}
