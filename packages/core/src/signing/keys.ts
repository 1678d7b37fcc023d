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
 * The platform's keys: access tokens, job statements, and the root keys of webhook secrets and module tokens. Private
 * keys are in Secrets Manager; public access keys are in the table, so that verification needs no secret.
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
  .transform((held) => ({
    ...held,
    webhook: held.webhook ?? derived(held.statement, 'webhook master'),
    module: derived(held.statement, 'module master'),
  }))
type PrivateKey = z.infer<typeof PrivateKey>
type Keys = z.infer<typeof Keys>

/** A root key that is not stored, but derived from the statement key. */
function derived(statement: readonly PrivateKey[], purpose: string): string {
  const seed = Buffer.from(statement.at(-1)?.jwk.d ?? '', 'base64url')
  return Buffer.from(hkdfSync('sha256', seed, '', purpose, 32)).toString('base64url')
}

/** The purpose of a key. A token of one purpose is never valid for another. */
export type KeyPurpose = 'access' | 'statement'

const rotateAfterMs = 30 * 24 * 3_600_000

const mint = (): PrivateKey => ({
  kid: newSecret().slice(0, 16),
  createdAtMs: now(),
  jwk: PrivateJwk.parse(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
})

async function stored(): Promise<Keys | undefined> {
  const text = await readSecret(config.PLAT_SECRET_SIGNING_KEYS)
  return text === undefined ? undefined : Keys.parse(JSON.parse(text))
}

/** The stored keys. Throws `starting` before the first start has created them. */
async function held(): Promise<Keys> {
  const keys = await stored()
  if (keys === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return keys
}

let masters: { webhook: string; module: string } | undefined

/** Options of a key rotation. */
export interface Rotation extends Revocation {
  rotate?: boolean
}

/**
 * Ensures that keys exist and are published, and that the access key is at most thirty days old. Idempotent, safe
 * concurrently and after interruption: a key is published before its first signature, until its tokens have expired.
 * Two store calls and two to Secrets Manager; a rotation takes one more of each.
 */
export async function ensureKeys(rotation: Rotation = {}): Promise<void> {
  const old = (await stored()) ?? (await mintAll())
  const [current] = old.access
  const isFresh = current !== undefined && now() - current.createdAtMs < rotateAfterMs
  if (!isFresh || rotation.rotate === true) await replaceAccessKey(old, rotation)
  // Of concurrent rotations the secret written last wins.
  await retireKeys((await stored())?.access[0], rotation)
  signers.clear()
  masters = undefined
}

async function replaceAccessKey(old: Keys, { withdraw = false }: Rotation): Promise<void> {
  const minted = mint()
  await publishKey(minted)
  await failpoint('keys.published')
  // Its age counts from publication: clients could not have read it before.
  const access = [{ ...minted, createdAtMs: now() }, ...(withdraw ? [] : untilMature(old.access))]
  await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify({ ...old, access }))
  await failpoint('keys.written')
}

/** Of concurrent first starts one creates the keys and the others read them, because relays and receivers pin them. */
async function mintAll(): Promise<Keys> {
  const first = mint()
  await publishKey(first)
  const minted = { access: [first], statement: [mint()], webhook: newSecret() }
  await createSecretOnce(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(minted))
  return held()
}

/** A key ready for signing. */
export interface Signer {
  kid: string
  key: CryptoKey
}

const signers = new Map<KeyPurpose, { signer: Signer; untilMs: number }>()
const believedMs = 300_000

/** A key signs only once every verifier can know it, so that no token is rejected. */
const signsAfterMs = 2 * keyCacheMs

const isMature = ({ createdAtMs }: PrivateKey): boolean => now() - createdAtMs >= signsAfterMs

/** The newest keys, up to one that may sign. */
function untilMature(list: readonly PrivateKey[]): readonly PrivateKey[] {
  const index = list.findIndex(isMature)
  return index < 0 ? list : list.slice(0, index + 1)
}

/** The current signing key of a purpose. One Secrets Manager call per process and five minutes. */
export async function signer(purpose: KeyPurpose): Promise<Signer> {
  const known = signers.get(purpose)
  if (known !== undefined && now() < known.untilMs) return known.signer
  const list = (await held())[purpose]
  const key = untilMature(list).at(-1)
  if (key === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  const fresh = { kid: key.kid, key: await importJWK(key.jwk, 'EdDSA') }
  signers.set(purpose, { signer: fresh, untilMs: now() + (key === list[0] ? believedMs : signsAfterMs) })
  return fresh
}

/** The root key of webhook secrets. One Secrets Manager call per process. */
export const webhookRootKey = async (): Promise<string> => (masters ??= await held()).webhook

/** The root key of tokens between the platform and module instances. The same call. */
export const moduleRootKey = async (): Promise<string> => (masters ??= await held()).module

/** Public keys of job statements; relays pin them at enrollment. */
export async function statementKeys(): Promise<KeySet> {
  return { keys: (await held()).statement.map(publicKeyOf) }
}

const Order = z.strictObject({ rotate: z.literal('access'), withdraw: z.boolean().default(false) })

/**
 * Parses a rotation request: `{"rotate": "access"}`, with `"withdraw": true` for a leaked key. Undefined for other
 * events; throws for an unknown key. No call.
 */
export function rotationIn(event: unknown): Rotation | undefined {
  if (typeof event !== 'object' || event === null || !('rotate' in event)) return undefined
  return { rotate: true, withdraw: Order.parse(event).withdraw }
}
