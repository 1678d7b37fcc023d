import { type CryptoKey, importJWK } from 'jose'
import * as z from 'zod'
import { createSecretOnce, readSecret, writeSecret } from '../aws/secrets.ts'
import { elapsedMs, now } from '../clock.ts'
import { platformError } from '../error.ts'
import { failpoint } from '../lib/failpoint.ts'
import { ensureAuditKey } from './audit-key.ts'
import { generateKey, keySecret, PrivateKey, type TokenKind } from './private-key.ts'
import { publishKey, keyCacheMs, retireKeys, type Revocation } from './published-keys.ts'
import { ensureRootKeys } from './root-keys.ts'
import { ensureStatementKey, replaceStatementKey } from './statement-keys.ts'

/**
 * Each purpose has its own secret, which only its signers can read. The public keys of tokens are in the table, so that
 * verification needs no secret.
 */

/** Ordered from newest to oldest. */
const TokenKeys = z.array(PrivateKey).min(1)
type TokenKeys = readonly PrivateKey[]

const secretNames = { access: keySecret('access-keys'), module: keySecret('module-token-keys') } as const

const rotateAfterMs = 30 * 24 * 3_600_000

async function readKeys(kind: TokenKind): Promise<TokenKeys | undefined> {
  const text = await readSecret(secretNames[kind])
  return text === undefined ? undefined : TokenKeys.parse(JSON.parse(text))
}

async function requireKeys(kind: TokenKind): Promise<TokenKeys> {
  const keys = await readKeys(kind)
  if (keys === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return keys
}

export interface Rotation extends Revocation {
  rotate?: boolean
}

/**
 * Creates missing keys, and replaces token keys older than thirty days or on request. Idempotent, and safe when run
 * concurrently or interrupted: a key is published before its first signature and stays published until its tokens have
 * expired.
 */
export async function ensureKeys(rotation: Rotation = {}): Promise<void> {
  await Promise.all([
    ensureRootKeys(),
    ensureStatementKey(),
    ensureAuditKey(),
    ensureTokenKeys('access', rotation),
    ensureTokenKeys('module', rotation),
  ])
}

async function ensureTokenKeys(kind: TokenKind, rotation: Rotation): Promise<void> {
  const oldKeys = (await readKeys(kind)) ?? (await createKeys(kind))
  const [currentKey] = oldKeys
  const isFresh = currentKey !== undefined && now() - currentKey.createdAtMs < rotateAfterMs
  if (!isFresh || rotation.rotate === true) await replaceKey(kind, oldKeys, rotation)
  // The keys are read again, because the last of concurrent rotations wins.
  await retireKeys(kind, (await readKeys(kind))?.[0], rotation)
  signerCache.delete(kind)
}

async function replaceKey(kind: TokenKind, oldKeys: TokenKeys, { withdraw = false }: Rotation): Promise<void> {
  const newKey = generateKey()
  await publishKey(kind, newKey)
  await failpoint('keys.published')
  // The key's age counts from its publication, because verifiers could not read it before.
  const keys = [{ ...newKey, createdAtMs: now() }, ...(withdraw ? [] : untilMature(oldKeys))]
  await writeSecret(secretNames[kind], JSON.stringify(keys))
  await failpoint('keys.written')
}

/** Concurrent first starts create the same key. */
async function createKeys(kind: TokenKind): Promise<TokenKeys> {
  const newKey = generateKey()
  await publishKey(kind, newKey)
  await createSecretOnce(secretNames[kind], JSON.stringify([newKey]))
  return requireKeys(kind)
}

export interface Signer {
  kid: string
  key: CryptoKey
}

const signerCache = new Map<TokenKind, { signer: Signer; untilMs: number }>()
const cacheTtlMs = 300_000

/** A key starts to sign at this age, when every verifier may read the published keys again and thus finds it. */
const signsAfterMs = 2 * keyCacheMs

const isMature = ({ createdAtMs }: PrivateKey): boolean => now() - createdAtMs >= signsAfterMs

/** Returns the newest keys, up to the first that may sign. */
function untilMature(list: readonly PrivateKey[]): readonly PrivateKey[] {
  const index = list.findIndex(isMature)
  return index < 0 ? list : list.slice(0, index + 1)
}

export async function signerOf(kind: TokenKind): Promise<Signer> {
  const cachedSigner = signerCache.get(kind)
  if (cachedSigner !== undefined && elapsedMs() < cachedSigner.untilMs) return cachedSigner.signer
  const list = await requireKeys(kind)
  const key = untilMature(list).at(-1)
  if (key === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  const signer = { kid: key.kid, key: await importJWK(key.jwk, 'EdDSA') }
  signerCache.set(kind, { signer, untilMs: elapsedMs() + (key === list[0] ? cacheTtlMs : signsAfterMs) })
  return signer
}

const RotationRequest = z.strictObject({
  rotate: z.enum(['access', 'statements']),
  withdraw: z.boolean().default(false),
})

/**
 * A request is `{"rotate": "access"}` or `{"rotate": "statements"}`, with `"withdraw": true` for a leaked key. Returns
 * undefined for other events; throws if the request is invalid.
 */
export function rotationIn(event: unknown): (() => Promise<void>) | undefined {
  if (typeof event !== 'object' || event === null || !('rotate' in event)) return undefined
  const { rotate, withdraw } = RotationRequest.parse(event)
  return rotate === 'access' ? () => ensureKeys({ rotate: true, withdraw }) : () => replaceStatementKey({ withdraw })
}
