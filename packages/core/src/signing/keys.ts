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
 * The platform has keys for access tokens and for job statements, and root keys for webhook secrets and module tokens.
 * Private keys are in Secrets Manager. Public access keys are in the table, so that verification needs no secret.
 */

const PrivateJwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })
const PrivateKey = z.object({ kid: z.string(), createdAtMs: z.number(), jwk: PrivateJwk })
const Keys = z
  .object({
    access: z.array(PrivateKey).min(1),
    statement: z.array(PrivateKey).min(1),
    /** 256 random bits. Never rotated, because webhook receivers verify with secrets derived from it. */
    webhook: z.string().optional(),
  })
  .transform((keys) => ({
    ...keys,
    webhook: keys.webhook ?? deriveKey(keys.statement, 'webhook master'),
    module: deriveKey(keys.statement, 'module master'),
  }))
type PrivateKey = z.infer<typeof PrivateKey>
type Keys = z.infer<typeof Keys>

/** Derives a root key from the statement key instead of storing it. */
function deriveKey(statement: readonly PrivateKey[], purpose: string): string {
  const seed = Buffer.from(statement.at(-1)?.jwk.d ?? '', 'base64url')
  return Buffer.from(hkdfSync('sha256', seed, '', purpose, 32)).toString('base64url')
}

/** A token of one purpose is never valid for the other. */
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

async function requireKeys(): Promise<Keys> {
  const keys = await readKeys()
  if (keys === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return keys
}

let rootKeys: { webhook: string; module: string } | undefined

export interface Rotation extends Revocation {
  rotate?: boolean
}

/**
 * Creates missing keys and replaces an access key older than thirty days. Idempotent, and safe when run concurrently or
 * interrupted: a key is published before its first signature and until its tokens have expired.
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
  // The key's age counts from its publication, because verifiers could not read it before.
  const access = [{ ...newKey, createdAtMs: now() }, ...(withdraw ? [] : untilMature(old.access))]
  await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify({ ...old, access }))
  await failpoint('keys.written')
}

/** A concurrent first start must not replace the keys, because relays and webhook receivers pin them. */
async function createKeys(): Promise<Keys> {
  const accessKey = generateKey()
  await publishKey(accessKey)
  const newKeys = { access: [accessKey], statement: [generateKey()], webhook: newSecret() }
  await createSecretOnce(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(newKeys))
  return requireKeys()
}

export interface Signer {
  kid: string
  key: CryptoKey
}

const signers = new Map<KeyPurpose, { signer: Signer; untilMs: number }>()
const cacheMs = 300_000

/** A key starts to sign at this age, when all verifiers have read it. */
const signsAfterMs = 2 * keyCacheMs

const isMature = ({ createdAtMs }: PrivateKey): boolean => now() - createdAtMs >= signsAfterMs

/** Returns the newest keys, up to the first that may sign. */
function untilMature(list: readonly PrivateKey[]): readonly PrivateKey[] {
  const index = list.findIndex(isMature)
  return index < 0 ? list : list.slice(0, index + 1)
}

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

export const webhookRootKey = async (): Promise<string> => (rootKeys ??= await requireKeys()).webhook

export const moduleRootKey = async (): Promise<string> => (rootKeys ??= await requireKeys()).module

export async function statementKeys(): Promise<KeySet> {
  return { keys: (await requireKeys()).statement.map(publicKeyOf) }
}

const RotationRequest = z.strictObject({ rotate: z.literal('access'), withdraw: z.boolean().default(false) })

/**
 * A request is `{"rotate": "access"}`, with `"withdraw": true` for a leaked key. Returns undefined for other events;
 * throws for an unknown key.
 */
export function rotationIn(event: unknown): Rotation | undefined {
  if (typeof event !== 'object' || event === null || !('rotate' in event)) return undefined
  return { rotate: true, withdraw: RotationRequest.parse(event).withdraw }
}
