import { timingSafeEqual } from 'node:crypto'
import { type Credentials, refreshTokenSeconds, TokenSet } from '@platform/contract/auth'
import { type Session, sessionLimit } from '@platform/contract/session'
import * as z from 'zod'
import { type Caller, type Origin, system } from '../caller.ts'
import { commit, readWithRights } from '../outbox/commit.ts'
import { iso, isWithin, now } from '../clock.ts'
import {
  acceptedWrites,
  type Attempt,
  beginAttempt,
  comparePassword,
  type Credential,
  failAccepted,
} from './credential.ts'
import { config } from '../config.ts'
import { counterOf, limitExceededError, perMinute, stateOf } from '../db/call-limit.ts'
import type { Condition } from '../db/expression.ts'
import { indexedKeys } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { create, get, getConsistent, type Item, orThrow, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { isId, newId, newSecret, sha256 } from '../id.ts'
import { reportRateLimit } from '../lib/rate-limit-state.ts'
import { seal, unseal } from '../outbox/idempotency.ts'
import { accessTokenSeconds, issueAccessToken } from '../signing/access-token.ts'
import { rememberDevice } from './device.ts'
import {
  checkIntervalMs,
  type Confirm,
  type Confirmation,
  maxUnconfirmedMs,
  newConfirmation,
  type ProviderGrant,
  sealGrant,
  suspend,
  unsealGrant,
} from './provider-check.ts'
import { find, isEnabledProvider, isLocal, parseUser, type User } from './user.ts'

/** Each sign-in opens a session with a chain of refresh tokens. A refresh token works once; reuse ends the session. */

const dayMs = 24 * 3_600_000
const refreshTokenMs = refreshTokenSeconds * 1000
/** Tokens and sessions are stored for a day beyond their expiry, so that reuse is still detected. */
const ttlOf = (expiresAtMs: number): number => Math.ceil(expiresAtMs / 1000) + 24 * 3600

const SessionRecord = z.object({
  id: z.string(),
  userId: z.string(),
  organisationId: z.string(),
  address: z.string(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number(),
  epoch: z.number(),
  /**
   * The last time when the identity provider confirmed the user, and the last time when the platform asked. If absent,
   * `createdAtMs` counts.
   */
  confirmedAtMs: z.number().optional(),
  checkedAtMs: z.number().optional(),
  revokedAtMs: z.number().optional(),
  /** Set by `signOut`: access tokens of the session can read until they expire. */
  isSignedOut: z.literal(true).optional(),
  /** The minute of the last refresh, and the number of refreshes in it. */
  refreshMinute: z.number().default(0),
  refreshes: z.number().default(0),
})
export type SessionRecord = z.output<typeof SessionRecord>

export const parseSession = (item: Item): SessionRecord => SessionRecord.parse(item)

/** A retry with the same `Idempotency-Key` within this time receives the first response, which may have been lost. */
const maxRepeatMs = 60_000

const RefreshToken = z.object({
  hash: z.string(),
  expiresAtMs: z.number(),
  usedAtMs: z.number().optional(),
  grant: z.instanceof(Uint8Array).optional(),
  /** The response to the request that used the token, encrypted with the `Idempotency-Key` and the token. */
  response: z.instanceof(Uint8Array).optional(),
})
type RefreshToken = z.infer<typeof RefreshToken>

interface TokenFamily {
  sessionId: string
  userId: string
  organisationId: string
  roles: readonly string[]
}

const tokenSet = async (family: TokenFamily, refreshToken: string): Promise<TokenSet> => ({
  accessToken: await issueAccessToken(family),
  refreshToken,
  expiresIn: accessTokenSeconds,
  tokenType: 'Bearer',
})

function newRefreshToken(sessionId: string, atMs: number, grant?: ProviderGrant) {
  const tokenId = newSecret().slice(0, 12)
  const secret = newSecret()
  const expiresAtMs = atMs + refreshTokenMs
  const text = `${sessionId}.${tokenId}.${secret}`
  const key = keys.refreshToken(sessionId, tokenId)
  const item = { hash: sha256(secret), expiresAtMs, ttl: ttlOf(expiresAtMs), ...sealGrant(grant, text) }
  return { text, key, write: create(key, item) }
}

export const isOpen = (session: SessionRecord, { epoch, keptSessionId }: User): boolean =>
  session.revokedAtMs === undefined &&
  session.lastUsedAtMs + refreshTokenMs > now() &&
  session.createdAtMs + config.PLAT_SESSION_MAX_DAYS * dayMs > now() &&
  (session.epoch === epoch || session.id === keptSessionId)

/** Whether access tokens of the session can still read. */
export const isReadable = (session: SessionRecord, user: User): boolean =>
  isOpen(session.isSignedOut ? { ...session, revokedAtMs: undefined } : session, user)

/**
 * `epoch` is the session epoch of the user's credential. Call `tokens` before you commit `writes`, so that a signing
 * error changes nothing.
 */
export function open(
  user: Pick<User, 'id' | 'organisationId' | 'roles'>,
  { address }: Origin = { address: '' },
  epoch = 0,
  grant?: ProviderGrant,
) {
  const sessionId = newId('sess')
  const { id: userId, organisationId, roles } = user
  const createdAtMs = now()
  const token = newRefreshToken(sessionId, createdAtMs, grant)
  const times = { createdAtMs, lastUsedAtMs: createdAtMs, ttl: ttlOf(createdAtMs + refreshTokenMs) }
  const record: z.input<typeof SessionRecord> = { id: sessionId, userId, organisationId, address, epoch, ...times }
  const session = { ...record, gsi1pk: keys.userSessions(userId) }
  return {
    id: sessionId,
    writes: [create(keys.session(sessionId), session), token.write],
    tokens: () => tokenSet({ sessionId, userId, organisationId, roles }, token.text),
  }
}

/** `device` is the cookie that a browser keeps for later sign-ins. */
const SignedIn = TokenSet.extend({ device: z.string().optional() })
export type SignedIn = z.infer<typeof SignedIn>

export const signIn = async ({ username, password }: Credentials, origin: Origin): Promise<SignedIn> =>
  signInLocally(await beginAttempt(username, origin), password, origin)

export async function signInLocally(attempt: Attempt, password: string, origin: Origin): Promise<SignedIn> {
  const credential = await comparePassword(attempt, password)
  return openLocally(attempt, credential, origin).catch((error: unknown) => failAccepted(attempt, error))
}

async function openLocally(
  attempt: Attempt,
  { epoch, organisationId, userId }: Credential,
  origin: Origin,
): Promise<SignedIn> {
  const item = await get(keys.user(organisationId, userId))
  if (item === undefined) throw platformError('invalid_credentials')
  const user = parseUser(item)
  const session = open(user, origin, epoch)
  const tokens = await session.tokens()
  const device = attempt.device && rememberDevice(attempt.device.known, [user.id])
  await commit(signingInCaller(user, origin), {
    writes: [
      ...session.writes.map((write) => orThrow(write, 'conflict')),
      ...acceptedWrites(attempt),
      ...(device?.writes ?? []),
    ],
    ...sessionOpenedEffects(user, session.id),
  })
  return withDevice(tokens, device)
}

export const withDevice = (tokens: TokenSet, device: { token: string } | undefined): SignedIn =>
  device === undefined ? tokens : { ...tokens, device: device.token }

export const sessionOpenedEffects = ({ id, username }: User, sessionId: string) => ({
  audit: { action: 'session.open', resource: sessionId },
  events: [{ name: 'user.signed_in' as const, subject: id, data: { userId: id, username, sessionId } }],
})

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

interface RefreshOptions {
  /** Without this function, the session of a provider's user ends 24 hours after the last confirmation. */
  confirm?: Confirm
  idempotencyKey?: string | undefined
  /** Also creates a device and returns its cookie. */
  isNewDevice?: boolean
}

/** A reused token ends the session, because the thief and the user cannot be distinguished (RFC 9700). */
export async function refresh(
  { refreshToken }: { refreshToken: string },
  origin?: Origin,
  { confirm, idempotencyKey, isNewDevice = false }: RefreshOptions = {},
): Promise<SignedIn> {
  const match = await findByToken(refreshToken)
  if (match === undefined) throw platformError('invalid_refresh_token')
  const { session, token, tokenKey } = match
  const sessionId = session.id
  const family = { sessionId, ...session }
  const sealKey = idempotencyKey && `${idempotencyKey} ${refreshToken}`
  const repeatedResponse = storedResponse(token, sealKey)
  if (token.usedAtMs !== undefined && repeatedResponse === undefined) return endReusedSession(family, origin)
  if (token.expiresAtMs <= now()) throw platformError('invalid_refresh_token')

  // Read after the session, so that a new epoch of the user is noticed.
  const user = await find(session.organisationId, session.userId)
  if (user === undefined || !isOpen(session, user)) throw platformError('invalid_refresh_token')
  const provider = isLocal(user) ? undefined : await get(keys.identityProvider(user.authProvider))
  if (!isLocal(user) && !isEnabledProvider(provider))
    return endSession(family, 'The identity provider is disabled or gone', origin)
  if (repeatedResponse !== undefined) return repeatedResponse
  const counts = countRefresh(session)
  const atMs = now()
  const grant = unsealGrant(token.grant, refreshToken)
  const isCheckDue = provider !== undefined && !isWithin(session.checkedAtMs ?? session.createdAtMs, checkIntervalMs)
  const newToken = newRefreshToken(sessionId, atMs, grant && isCheckDue ? { ...grant, isInUse: true } : grant)
  // Signed before the old token is consumed, so that the old token stays valid if the signing keys are unavailable.
  const tokens = await tokenSet({ sessionId, ...session, roles: user.roles }, newToken.text)
  const device = isNewDevice ? rememberDevice(undefined, [user.id]) : undefined
  const response = withDevice(tokens, device)
  const checkTime = isCheckDue && { checkedAtMs: atMs }
  const sessionChange = { set: { ...counts, lastUsedAtMs: atMs, ttl: ttlOf(atMs + refreshTokenMs), ...checkTime } }
  const use = { usedAtMs: atMs, ...(sealKey && { response: seal(sealKey, Buffer.from(JSON.stringify(response))) }) }
  const failure = await transact([
    patch(tokenKey, { set: use }, { usedAtMs: { absent: true } }),
    patch(keys.session(sessionId), sessionChange, { revokedAtMs: { absent: true } }),
    newToken.write,
    ...(device?.writes ?? []),
  ])
  if (failure?.index === 0 && failure.item !== undefined)
    return storedResponse(RefreshToken.parse(failure.item), sealKey) ?? endReusedSession(family, origin)
  if (failure) throw platformError('invalid_refresh_token')
  // The check follows the commit, so that only one of several concurrent refreshes sends the provider's refresh token,
  // which the provider may accept only once.
  if (isCheckDue)
    await checkAtProvider({ session, user, newToken, origin }, await confirm?.(user, provider, grant, origin))
  return response
}

function storedResponse({ usedAtMs, response }: RefreshToken, sealKey: string | undefined): SignedIn | undefined {
  // A use in the future counts as recent, because the clock may have been set back.
  if (!sealKey || response === undefined || usedAtMs === undefined || now() >= usedAtMs + maxRepeatMs) return undefined
  try {
    return SignedIn.parse(JSON.parse(Buffer.from(unseal(sealKey, response)).toString()))
  } catch {
    // The response was encrypted with another `Idempotency-Key`.
    return undefined
  }
}

/** Throws `rate_limited` beyond the limit. The count is in the session's record, which a refresh changes anyway. */
function countRefresh({ id, refreshMinute, refreshes }: SessionRecord) {
  const counter = counterOf(perMinute(`refresh:${id}`, config.PLAT_LIMIT_REFRESH_PER_MINUTE))
  const earlierCount = refreshMinute === counter.periodNumber ? refreshes : 0
  if (earlierCount >= counter.limit) throw limitExceededError(counter, [earlierCount])
  reportRateLimit(stateOf(counter, [earlierCount + 1]))
  return { refreshMinute: counter.periodNumber, refreshes: earlierCount + 1 }
}

interface Check {
  session: SessionRecord
  user: User
  newToken: { key: keys.Key; text: string }
  origin: Origin | undefined
}

async function checkAtProvider(
  { session, user, newToken, origin }: Check,
  confirmation: Confirmation = { status: 'unknown' },
): Promise<void> {
  const { id: sessionId, organisationId } = session
  if (confirmation.status === 'withdrawn') {
    await suspend(organisationId, user.id, confirmation.reason, origin)
    throw platformError('invalid_refresh_token')
  }
  if (confirmation.status === 'unknown') {
    if (now() < (session.confirmedAtMs ?? session.createdAtMs) + maxUnconfirmedMs) return
    await endSession({ sessionId, ...session }, 'The identity provider has not confirmed the user for 24 hours', origin)
  }
  const grantField = confirmation.status === 'confirmed' ? sealGrant(confirmation.grant, newToken.text) : {}
  const userConfirmation = newConfirmation(user)
  await transact([
    patch(keys.session(sessionId), { set: { confirmedAtMs: now() } }, { revokedAtMs: { absent: true } }),
    ...(grantField.grant ? [patch(newToken.key, { set: grantField }, { usedAtMs: { absent: true } })] : []),
    ...(userConfirmation ? [patch(keys.user(organisationId, user.id), { set: userConfirmation })] : []),
  ])
}

/** Accepts used tokens, so that the caller can detect reuse. */
async function findByToken(refreshToken: string) {
  const [sessionId = '', tokenId = '', secret = '', ...extraParts] = refreshToken.split('.')
  if (!isId('sess', sessionId) || !/^[\w-]{12}$/.test(tokenId) || extraParts.length > 0) return undefined
  const tokenKey = keys.refreshToken(sessionId, tokenId)
  const [sessionItem, tokenItem] = await getConsistent([keys.session(sessionId), tokenKey])
  if (sessionItem === undefined || tokenItem === undefined) return undefined
  const session = parseSession(sessionItem)
  const token = RefreshToken.parse(tokenItem)
  const isGenuine = timingSafeEqual(Buffer.from(token.hash), Buffer.from(sha256(secret)))
  return isGenuine && session.revokedAtMs === undefined ? { session, token, tokenKey } : undefined
}

async function endReusedSession(
  { sessionId, userId, organisationId }: Omit<TokenFamily, 'roles'>,
  origin?: Origin,
): Promise<never> {
  await commit(system(organisationId, origin?.address), {
    writes: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: 'A refresh token was used twice' },
    events: [{ name: 'session.reuse_detected', subject: sessionId, data: { userId, sessionId } }],
  })
  throw platformError('invalid_refresh_token')
}

async function endSession(
  { sessionId, organisationId }: Omit<TokenFamily, 'roles'>,
  reason: string,
  origin?: Origin,
): Promise<never> {
  await commit(system(organisationId, origin?.address), {
    writes: [revokeSessionWrite(sessionId)],
    audit: { action: 'session.revoke', resource: sessionId, detail: reason },
  })
  throw platformError('invalid_refresh_token')
}

function revokeSessionWrite(sessionId: string, condition: Condition = {}, isSignedOut?: true): WriteItem {
  const revokedAtMs = now()
  const set = { revokedAtMs, isSignedOut, ttl: ttlOf(revokedAtMs + refreshTokenMs) }
  const notRevoked = { revokedAtMs: { absent: true } } as const
  return patch(keys.session(sessionId), { set, remove: ['gsi1pk'] }, { ...notRevoked, ...condition })
}

/** A repeat has no effect and succeeds, so the rights of the session are not checked. */
export async function signOut(authenticatedCaller: Caller): Promise<void> {
  const { rights: _rights, ...caller } = authenticatedCaller
  if (caller.sessionId === '') return
  await close(caller, revokeSessionWrite(caller.sessionId, {}, true))
}

const close = (caller: Caller, write: WriteItem) =>
  commit(caller, { writes: [write], audit: { action: 'session.close', resource: caller.sessionId } })

export async function endSessionByToken(refreshToken: string, origin: Origin): Promise<void> {
  const match = await findByToken(refreshToken)
  if (match === undefined) return
  const { id: sessionId, userId, organisationId } = match.session
  const caller = { ...signingInCaller({ id: userId, organisationId }, origin), sessionId }
  await close(caller, revokeSessionWrite(sessionId))
}

/** Covers the newest 100 sessions. The index may lag behind the latest sign-in. */
export async function list({ organisationId, userId, sessionId }: Caller): Promise<{ items: Session[] }> {
  const range = { index: 'gsi1', pk: keys.userSessions(userId), isNewestFirst: true, limit: sessionLimit } as const
  const [user, sessionKeys] = await Promise.all([find(organisationId, userId), indexedKeys(range)])
  if (user === undefined) throw platformError('unauthenticated')
  const items = await getConsistent(sessionKeys.map(({ id }) => keys.session(id)))
  const sessions = items.filter((item) => item !== undefined).map(parseSession)
  return { items: sessions.filter((session) => isOpen(session, user)).map((session) => view(session, sessionId)) }
}

const view = ({ id, createdAtMs, lastUsedAtMs, address }: SessionRecord, currentId: string): Session => ({
  id,
  createdAt: iso(createdAtMs),
  lastUsedAt: iso(lastUsedAtMs),
  address,
  isCurrent: id === currentId,
})

export async function end(caller: Caller, sessionId: string): Promise<void> {
  if (!isId('sess', sessionId)) throw platformError('session_not_found')
  const { organisationId, userId } = caller
  const itemKeys = [keys.user(organisationId, userId), keys.session(sessionId)]
  const [user, session] = await readWithRights(caller, itemKeys)
  if (user === undefined) throw platformError('unauthenticated')
  const isOpenNow = session !== undefined && isOpen(parseSession(session), parseUser(user))
  if (!isOpenNow) throw platformError('session_not_found')
  const ownedByCaller = { userId: { is: userId } }
  await commit(caller, {
    writes: [orThrow(revokeSessionWrite(sessionId, ownedByCaller), 'session_not_found')],
    audit: { action: 'session.revoke', resource: sessionId },
  })
}
