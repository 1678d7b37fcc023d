import type { KeySet } from '@platform/contract/relay'
import { CompactSign, type CryptoKey, importJWK } from 'jose'
import * as z from 'zod'
import { createSecretOnce, readSecret, replaceSecretOnce } from '../aws/secrets.ts'
import { isWithin, now, nowSeconds } from '../clock.ts'
import { platformError } from '../error.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { failpoint } from '../lib/failpoint.ts'
import { generateKey, keySecret, PrivateKey } from './private-key.ts'
import { publicKeyOf } from './published-keys.ts'

/**
 * The key of job statements. A replaced key signs its successor and is then deleted, so that a relay that trusts the
 * replaced key learns the successor from a heartbeat or a claim.
 */

/** A relay that missed more replacements than this must be enrolled again. */
const maxReplaced = 10
const cacheTtlMs = 300_000
/** Processes read the secret again for an unknown key id, at most this often. */
export const minRereadMs = 5000
/** Relays with the same unknown key receive the result of one read. */
const unknownTtlMs = 60_000

const StatementKeys = z.object({
  current: PrivateKey,
  /** Replaced keys, oldest first, with the statement (JWS) by which each introduces the next one. */
  replaced: z.array(z.object({ kid: z.string(), successor: z.string() })),
})
type StatementKeys = z.infer<typeof StatementKeys>

interface CachedKeys {
  keys: StatementKeys
  signingKey: CryptoKey
  readAtMs: number
}

let cachedKeys: CachedKeys | undefined
let rereadAtMs = Number.NEGATIVE_INFINITY
/** The times at which the secret was read for a key id that it did not contain. */
const unknownAtMs = new BoundedCache<number>(1000)

async function requireKeys(): Promise<StatementKeys> {
  const text = await readSecret(keySecret('statement-keys'))
  if (text === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return StatementKeys.parse(JSON.parse(text))
}

async function currentKeys(): Promise<CachedKeys> {
  // A clock that was set back makes the age negative.
  if (cachedKeys !== undefined && Math.abs(now() - cachedKeys.readAtMs) < cacheTtlMs) return cachedKeys
  const keys = await requireKeys()
  cachedKeys = { keys, signingKey: await importKey(keys.current), readAtMs: now() }
  return cachedKeys
}

async function importKey({ jwk }: PrivateKey): Promise<CryptoKey> {
  const key = await importJWK(jwk, 'EdDSA')
  if (key instanceof Uint8Array) throw new TypeError('A statement key must be a key pair.')
  return key
}

/** Creates the first key if there is none. If several first starts are concurrent, only one of their keys is stored. */
export async function ensureStatementKey(): Promise<void> {
  const firstKeys: StatementKeys = { current: generateKey(), replaced: [] }
  await createSecretOnce(keySecret('statement-keys'), JSON.stringify(firstKeys))
  cachedKeys = undefined
}

/**
 * Replaces the key in one write. If several callers replace the same key, only the first one succeeds. With `withdraw`,
 * the old key does not introduce the new one, because it has leaked: every relay must be enrolled again.
 */
export async function replaceStatementKey({ withdraw = false } = {}): Promise<void> {
  const oldKeys = await requireKeys()
  const newKey = generateKey()
  const successor = await sign(oldKeys.current.kid, await importKey(oldKeys.current), 'statement-key+jws', {
    key: publicKeyOf(newKey),
    iat: nowSeconds(),
  })
  const replaced = withdraw ? [] : [...oldKeys.replaced, { kid: oldKeys.current.kid, successor }].slice(-maxReplaced)
  await failpoint('statement-key.signed')
  const value = JSON.stringify({ current: newKey, replaced } satisfies StatementKeys)
  const isReplaced = await replaceSecretOnce(keySecret('statement-keys'), oldKeys.current.kid, value)
  await failpoint('statement-key.written')
  cachedKeys = undefined
  // A concurrent replacement may have let the leaked key introduce its successor.
  if (withdraw && !isReplaced) await replaceStatementKey({ withdraw })
}

/** Not cached, because a relay that is enrolled must not trust a key that was just withdrawn. */
export async function statementKeys(): Promise<KeySet> {
  return { keys: [publicKeyOf((await requireKeys()).current)] }
}

/**
 * Returns the statements that lead from the key that a relay trusts to the current key; none if the relay trusts the
 * current key. Returns `unknown` if no statements lead from the key, and `undecided` if the key may be newer than the
 * cached ones and the secret was read a moment ago.
 */
export async function successorsOf(kid: string): Promise<string[] | 'unknown' | 'undecided'> {
  const knownSuccessors = successorsIn(await currentKeys(), kid)
  if (knownSuccessors !== undefined) return knownSuccessors
  if (isWithin(unknownAtMs.get(kid) ?? Number.NEGATIVE_INFINITY, unknownTtlMs)) return 'unknown'
  if (isWithin(rereadAtMs, minRereadMs)) return 'undecided'
  rereadAtMs = now()
  cachedKeys = undefined
  const rereadSuccessors = successorsIn(await currentKeys(), kid)
  if (rereadSuccessors === undefined) unknownAtMs.set(kid, now())
  return rereadSuccessors ?? 'unknown'
}

function successorsIn({ keys: { current, replaced } }: CachedKeys, kid: string): string[] | undefined {
  if (kid === current.kid) return []
  const index = replaced.findIndex((key) => key.kid === kid)
  return index < 0 ? undefined : replaced.slice(index).map(({ successor }) => successor)
}

export async function signStatement(claims: Record<string, unknown>): Promise<string> {
  const { keys, signingKey } = await currentKeys()
  return sign(keys.current.kid, signingKey, 'job-statement+jws', claims)
}

const sign = (kid: string, key: CryptoKey, typ: string, claims: Record<string, unknown>): Promise<string> =>
  new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'EdDSA', typ, kid })
    .sign(key)
