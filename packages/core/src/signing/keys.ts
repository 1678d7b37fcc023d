import { generateKeyPairSync, hkdfSync } from 'node:crypto'
import type { KeySet } from '@platform/contract/relay'
import { type CryptoKey, importJWK } from 'jose'
import * as z from 'zod'
import { createSecretOnce, readSecret, writeSecret } from '../aws/secrets.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { publishKey, publicKeyOf, keyCacheMs, retireKeys, type Revocation } from './published-keys.ts'

/**
 * The platform's keys: for access tokens, for job statements, and the root keys of webhook secrets and module tokens.
 * Private keys are in Secrets Manager; public access keys are in the table, so that verification needs no secret.
 */

const PrivateJwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })
const PrivateKey = z.object({ kid: z.string(), createdAtMs: z.number(), jwk: PrivateJwk })
const Keys = z
  .object({
    access: z.array(PrivateKey).min(1),
    statement: z.array(PrivateKey).min(1),
    /** 256 random bits. Never rotated, because webhook receivers verify with derived secrets. */
    webhook: z.string().optional(),
  })
  .transform((keys) => ({
    ...keys,
    webhook: keys.webhook ?? deriveKey(keys.statement, 'webhook master'),
    module: deriveKey(keys.statement, 'module master'),
  }))
type PrivateKey = z.infer<typeof PrivateKey>
type Keys = z.infer<typeof Keys>

/** A root key that is derived from the statement key instead of stored. */
function deriveKey(statement: readonly PrivateKey[], purpose: string): string {
  const seed = Buffer.from(statement.at(-1)?.jwk.d ?? '', 'base64url')
  return Buffer.from(hkdfSync('sha256', seed, '', purpose, 32)).toString('base64url')
}

/** The purpose of a key. A token of one purpose is never valid for another. */
export type KeyPurpose = 'access' | 'statement'

const rotateAfterMs = 30 * 24 * 3_600_000

const generateKey = (): PrivateKey => ({
  kid: newSecret().slice(0, 16),
  createdAtMs: now(),
  jwk: PrivateJwk.parse(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
})

async function readKeys(): Promise<Keys | undefined> {
  const text = await readSecret(config.PLAT_SECRET_SIGNING_KEYS)
  return text === undefined ? undefined : Keys.parse(JSON.parse(text))
}

/** The stored keys. Throws `starting` before the first start has created them. */
async function requireKeys(): Promise<Keys> {
  const keys = await readKeys()
  if (keys === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return keys
}

let rootKeys: { webhook: string; module: string } | undefined

/** Options of a key rotation. */
export interface Rotation extends Revocation {
  rotate?: boolean
}

/**
 * Ensures that keys exist and are published, and that the access key is at most thirty days old. Idempotent and safe
 * concurrently and after interruption: a key is published before its first signature and until its tokens have expired.
 * Two store calls and two to Secrets Manager; a rotation takes one more of each.
 */
export async function ensureKeys(rotation: Rotation = {}): Promise<void> {
  const old = (await readKeys()) ?? (await createKeys())
  const [current] = old.access
  const isFresh = current !== undefined && now() - current.createdAtMs < rotateAfterMs
  if (!isFresh || rotation.rotate === true) await replaceAccessKey(old, rotation)
  // Read again, because the last of concurrent rotations wins.
  await retireKeys((await readKeys())?.access[0], rotation)
  signers.clear()
  rootKeys = undefined
}

async function replaceAccessKey(old: Keys, { withdraw = false }: Rotation): Promise<void> {
  const newKey = generateKey()
  await publishKey(newKey)
  await failpoint('keys.published')
  // Its age counts from its publication, because verifiers could not read it before.
  const access = [{ ...newKey, createdAtMs: now() }, ...(withdraw ? [] : untilMature(old.access))]
  await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify({ ...old, access }))
  await failpoint('keys.written')
}

/** Creates the keys, or reads those of a concurrent first start, because relays and receivers pin them. */
async function createKeys(): Promise<Keys> {
  const accessKey = generateKey()
  await publishKey(accessKey)
  const newKeys = { access: [accessKey], statement: [generateKey()], webhook: newSecret() }
  await createSecretOnce(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(newKeys))
  return requireKeys()
}

/** A key ready for signing. */
export interface Signer {
  kid: string
  key: CryptoKey
}

const signers = new Map<KeyPurpose, { signer: Signer; untilMs: number }>()
const cacheMs = 300_000

/** The age at which a key starts to sign: all verifiers have read it by then. */
const signsAfterMs = 2 * keyCacheMs

const isMature = ({ createdAtMs }: PrivateKey): boolean => now() - createdAtMs >= signsAfterMs

/** The newest keys, up to the first that may sign. */
function untilMature(list: readonly PrivateKey[]): readonly PrivateKey[] {
  const index = list.findIndex(isMature)
  return index < 0 ? list : list.slice(0, index + 1)
}

/** The current signing key of a purpose. One Secrets Manager call per process and five minutes. */
export async function signer(purpose: KeyPurpose): Promise<Signer> {
  const cached = signers.get(purpose)
  if (cached !== undefined && now() < cached.untilMs) return cached.signer
  const list = (await requireKeys())[purpose]
  const key = untilMature(list).at(-1)
  if (key === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  const newSigner = { kid: key.kid, key: await importJWK(key.jwk, 'EdDSA') }
  signers.set(purpose, { signer: newSigner, untilMs: now() + (key === list[0] ? cacheMs : signsAfterMs) })
  return newSigner
}

/** The root key of webhook secrets. One Secrets Manager call per process. */
export const webhookRootKey = async (): Promise<string> => (rootKeys ??= await requireKeys()).webhook

/** The root key of tokens between the platform and module instances. Shares the call of `webhookRootKey`. */
export const moduleRootKey = async (): Promise<string> => (rootKeys ??= await requireKeys()).module

/** Public keys of job statements; relays pin them at enrollment. */
export async function statementKeys(): Promise<KeySet> {
  return { keys: (await requireKeys()).statement.map(publicKeyOf) }
}

const RotationRequest = z.strictObject({ rotate: z.literal('access'), withdraw: z.boolean().default(false) })

/**
 * Parses a rotation request: `{"rotate": "access"}`, with `"withdraw": true` for a leaked key. Undefined for other
 * events; throws for an unknown key. No call.
 */
export function rotationIn(event: unknown): Rotation | undefined {
  if (typeof event !== 'object' || event === null || !('rotate' in event)) return undefined
  return { rotate: true, withdraw: RotationRequest.parse(event).withdraw }
}
