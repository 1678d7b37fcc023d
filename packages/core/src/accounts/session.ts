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
import { find, parseUser, type User, isProviderEnabled } from './user.ts'

/** Sessions: one sign-in is one family of refresh tokens. Each token works once; reuse ends the session. */

const refreshTokenMs = refreshTokenSeconds * 1000
/** Used tokens are kept past their expiry, so that reuse is still detected. */
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
/** A stored session. */
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

/** A new refresh token, as text and as the write that stores its hash. */
function mintRefreshToken(sessionId: string, atMs: number) {
  const tokenId = newSecret().slice(0, 12)
  const secret = newSecret()
  const expiresAtMs = atMs + refreshTokenMs
  const item = { hash: sha256(secret), expiresAtMs, ttl: ttlOf(expiresAtMs) }
  return { text: `${sessionId}.${tokenId}.${secret}`, step: create(keys.refreshToken(sessionId, tokenId), item) }
}

/** Whether the session is open: not revoked, of the current epoch, and used within seven days. */
export const isOpen = (session: SessionRecord, { epoch, keptSessionId }: User): boolean =>
  session.revokedAtMs === undefined &&
  session.lastUsedAtMs + refreshTokenMs > now() &&
  (session.epoch === epoch || session.id === keptSessionId)

/**
 * The writes that open a session, and its tokens. Tokens are signed first, so that a signing error changes nothing.
 * `epoch` is that of the credential.
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
    writes: [create(keys.session(sessionId), session), token.step],
    tokens: () => tokenSet({ sessionId, userId, organisationId, roles }, token.text),
  }
}

/**
 * Signs in with a local account. Three calls. Throws `invalid_credentials`, or `rate_limited` after too many failures
 * in one minute.
 */
export const signIn = async ({ username, password }: Credentials, origin: Origin): Promise<TokenSet> =>
  signInLocally(await beginAttempt(username, origin), password, origin)

/** Same as `signIn`, for a started attempt. Two calls. */
export async function signInLocally(attempt: Attempt, password: string, origin: Origin): Promise<TokenSet> {
  const { epoch, user: item } = await comparePassword(attempt, password)
  if (item === undefined) throw platformError('invalid_credentials')
  const user = parseUser(item)
  const session = open(user, origin, epoch)
  const tokens = await session.tokens()
  await commit(signingInCaller(user, origin), {
    writes: session.writes.map((step) => orThrow(step, 'conflict')),
    ...sessionOpenedEffects(user, session.id),
  })
  return tokens
}

/** The audit entry and events of a new session. */
export const sessionOpenedEffects = ({ id, username }: User, sessionId: string) => ({
  audit: { action: 'session.open', resource: sessionId },
  events: [{ name: 'user.signed_in' as const, subject: id, data: { userId: id, username, sessionId } }],
})

/** A user that is signing in, as the actor of the change. */
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
 * Exchanges a refresh token for a new token set. Three calls, four for a user of an identity provider; a disabled or
 * removed provider ends the session. Reuse of a token, also concurrent, ends the session: the thief cannot be
 * identified (RFC 9700).
 */
export async function refresh({ refreshToken }: { refreshToken: string }, origin?: Origin): Promise<TokenSet> {
  const known = await findByToken(refreshToken)
  if (known === undefined) throw platformError('invalid_refresh_token')
  const { session, token, tokenKey } = known
  const sessionId = session.id
  const family = { sessionId, ...session }
  if (token.usedAtMs !== undefined) return endFamily(family, origin)
  if (token.expiresAtMs <= now()) throw platformError('invalid_refresh_token')

  // Read after the session: a revocation of several sessions is recorded here.
  const user = await find(session.organisationId, session.userId)
  if (user === undefined || !isOpen(session, user)) throw platformError('invalid_refresh_token')
  if (!(await isProviderEnabled(user))) return endUnvouched(family, origin)
  const atMs = now()
  const successor = mintRefreshToken(sessionId, atMs)
  // Signed before the old token is consumed: without signing keys it stays valid.
  const tokens = await tokenSet({ sessionId, ...session, roles: user.roles }, successor.text)
  const used = { set: { lastUsedAtMs: atMs, ttl: ttlOf(atMs + refreshTokenMs) } }
  const refusal = await transact([
    patch(tokenKey, { set: { usedAtMs: atMs } }, { usedAtMs: { absent: true } }),
    patch(keys.session(sessionId), used, { revokedAtMs: { absent: true } }),
    successor.step,
  ])
  if (refusal?.index === 0) return endFamily(family, origin)
  if (refusal) throw platformError('invalid_refresh_token')
  return tokens
}

/** The session of a genuine refresh token, used or not, unless it has ended. One call. */
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
    writes: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: 'A refresh token was used twice' },
    events: [{ name: 'session.reuse_detected', subject: sessionId, data: { userId, sessionId } }],
  })
  throw platformError('invalid_refresh_token')
}

async function endUnvouched({ sessionId, organisationId }: Omit<Family, 'roles'>, origin?: Origin): Promise<never> {
  await commit(system(organisationId, origin?.address), {
    writes: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: 'The identity provider is disabled or gone' },
  })
  throw platformError('invalid_refresh_token')
}

/** Ends a session. Fails if it has ended or expired. */
export function revokeSessionWrite(sessionId: string, condition: Condition = {}): WriteItem {
  const revokedAtMs = now()
  const set = { revokedAtMs, ttl: ttlOf(revokedAtMs + refreshTokenMs) }
  const isAlive = { revokedAtMs: { absent: true } } as const
  return patch(keys.session(sessionId), { set, remove: ['gsi1pk'] }, { ...isAlive, ...condition })
}

/** Ends the caller's session with all its refresh tokens. The access token stays valid until it expires. One call. */
export async function signOut(caller: Caller): Promise<void> {
  if (caller.sessionId === '') return
  const { sessionId } = caller
  await commit(caller, {
    writes: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.close', resource: sessionId },
  })
}

/**
 * Ends the session of a refresh token, even of a used or expired one. Does nothing if the session has ended. Two calls.
 */
export async function endSessionByToken(refreshToken: string, origin: Origin): Promise<void> {
  const known = await findByToken(refreshToken)
  if (known === undefined) return
  const { id: sessionId, userId, organisationId } = known.session
  await signOut({ ...signingInCaller({ id: userId, organisationId }, origin), sessionId })
}
