import { timingSafeEqual } from 'node:crypto'
import { type Credentials, type TokenSet } from '@platform/contract/auth'
import * as z from 'zod'
import { type Caller, type Origin } from './caller.ts'
import { now } from './clock.ts'
import { config } from './config.ts'
import * as keys from './db/keys.ts'
import { create, getAll, patch, transact, update } from './db/table.ts'
import { fault } from './fault.ts'
import { isId, newId, newSecret, sha256 } from './id.ts'
import { passwordFits } from './password.ts'
import { accessTokenSeconds, issueAccessToken } from './token.ts'
import { Credential, find, type User } from './user.ts'

/** Sessions (D4): one sign-in is one family of refresh tokens. Each works once; a second use ends the family. */

const refreshTokenMs = 7 * 24 * 3_600_000
/** Used tokens are remembered past their expiry, so that a second use is still recognised. */
const ttlOf = (expiresAtMs: number): number => Math.ceil(expiresAtMs / 1000) + 24 * 3600

const Session = z.object({ userId: z.string(), organisationId: z.string(), revokedAtMs: z.number().optional() })
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
function mintRefreshToken(sessionId: string) {
  const tokenId = newSecret().slice(0, 12)
  const secret = newSecret()
  const expiresAtMs = now() + refreshTokenMs
  const item = { hash: sha256(secret), expiresAtMs, ttl: ttlOf(expiresAtMs) }
  return { text: `${sessionId}.${tokenId}.${secret}`, step: create(keys.refreshToken(sessionId, tokenId), item) }
}

/** Steps that open a session for a user, and the tokens once they have happened. */
export function open(user: User) {
  const sessionId = newId('sess')
  const { id: userId, organisationId, roles } = user
  const token = mintRefreshToken(sessionId)
  const session = { userId, organisationId, createdAtMs: now(), ttl: ttlOf(now() + refreshTokenMs) }
  return {
    steps: [create(keys.session(sessionId), session), token.step],
    tokens: () => tokenSet({ sessionId, userId, organisationId, roles }, token.text),
  }
}

/**
 * Signs in with a local account. Three calls: name and failures, user, session.
 * Throws `invalid_credentials`, or `rate_limited` after too many failures in one minute (D34).
 */
export async function signIn({ username, password }: Credentials, origin: Origin): Promise<TokenSet> {
  const minute = Math.floor(now() / 60_000)
  const failures = [
    keys.failedSignIns(`user:${username}`, minute),
    keys.failedSignIns(`address:${origin.address}`, minute),
  ]
  const [credentialItem, byUser, byAddress] = await getAll([keys.username(username), ...failures])
  const limits = [config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE]
  const exceeded = [byUser, byAddress].some((item, index) => Number(item?.['count'] ?? 0) >= (limits[index] ?? 0))
  if (exceeded) throw fault('rate_limited', { retryAfterSeconds: 60 - Math.floor((now() / 1000) % 60) })

  const credential = credentialItem && Credential.parse(credentialItem)
  const user =
    (await passwordFits(password, credential?.passwordHash)) && credential
      ? await find(credential.organisationId, credential.userId)
      : undefined
  if (user === undefined) {
    const change = { add: { count: 1 }, set: { ttl: (minute + 10) * 60 } }
    await Promise.all(failures.map((key) => update(key, change)))
    throw fault('invalid_credentials')
  }
  const session = open(user)
  if (await transact(session.steps)) throw fault('conflict')
  return session.tokens()
}

/**
 * Trades a refresh token for a new set. Three calls. A token that was used before, even at the same moment, ends the
 * session: of two users of one token the platform cannot tell which is the thief (RFC 9700).
 */
export async function refresh({ refreshToken }: { refreshToken: string }): Promise<TokenSet> {
  const [sessionId = '', tokenId = '', secret = ''] = refreshToken.split('.')
  if (!isId('sess', sessionId) || !/^[\w-]{12}$/.test(tokenId)) throw fault('invalid_refresh_token')
  const tokenKey = keys.refreshToken(sessionId, tokenId)
  const [sessionItem, tokenItem] = await getAll([keys.session(sessionId), tokenKey])
  if (sessionItem === undefined || tokenItem === undefined) throw fault('invalid_refresh_token')
  const session = Session.parse(sessionItem)
  const token = RefreshToken.parse(tokenItem)
  const isGenuine = timingSafeEqual(Buffer.from(token.hash), Buffer.from(sha256(secret)))
  if (!isGenuine || session.revokedAtMs !== undefined) throw fault('invalid_refresh_token')
  if (token.usedAtMs !== undefined) return endFamily(sessionId)
  if (token.expiresAtMs <= now()) throw fault('invalid_refresh_token')

  const user = await find(session.organisationId, session.userId)
  if (user === undefined) throw fault('invalid_refresh_token')
  const successor = mintRefreshToken(sessionId)
  const refusal = await transact([
    patch(tokenKey, { set: { usedAtMs: now() } }, { usedAtMs: { absent: true } }),
    patch(keys.session(sessionId), { set: { ttl: ttlOf(now() + refreshTokenMs) } }, { revokedAtMs: { absent: true } }),
    successor.step,
  ])
  if (refusal?.step === 0) return endFamily(sessionId)
  if (refusal) throw fault('invalid_refresh_token')
  return tokenSet({ sessionId, ...session, roles: user.roles }, successor.text)
}

async function endFamily(sessionId: string): Promise<never> {
  await revoke(sessionId)
  throw fault('invalid_refresh_token')
}

const revoke = async (sessionId: string): Promise<void> => {
  const revoked = { set: { revokedAtMs: now(), ttl: ttlOf(now() + refreshTokenMs) } }
  // A session that the store has forgotten needs no end.
  await transact([patch(keys.session(sessionId), revoked)])
}

/** Ends the caller's session: all its refresh tokens die, the access token lives until it expires. One call. */
export const signOut = (caller: Caller): Promise<void> => revoke(caller.sessionId)
