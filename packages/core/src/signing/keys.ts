import { generateKeyPairSync, hkdfSync } from 'node:crypto'
import { type KeySet } from '@platform/contract/relay'
import { type CryptoKey, importJWK } from 'jose'
import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { failpoint } from '../lib/failpoint.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { publishKey, publicKeyOf, keyCacheMs, retireKeys, type Revocation } from './published-keys.ts'
import { createSecretOnce, readSecret, writeSecret } from '../aws/secrets.ts'

/**
 * Keys that the platform signs with: one for access tokens, one for job statements, and the masters of which the secrets of
 * webhooks and the tokens of modules are derived. They live in Secrets Manager; the public halves of access keys stand in the table, so that whoever
 * only verifies needs no secret.
 */

const PrivateJwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })
const PrivateKey = z.object({ kid: z.string(), createdAtMs: z.number(), jwk: PrivateJwk })
const Keys = z
  .object({
    access: z.array(PrivateKey).min(1),
    statement: z.array(PrivateKey).min(1),
    /** 256 random bits. It never changes: every webhook's receiver verifies with what is derived of it. */
    webhook: z.string().optional(),
  })
  .transform((held) => ({
    ...held,
    webhook: held.webhook ?? derived(held.statement, 'webhook master'),
    module: derived(held.statement, 'module master'),
  }))
type PrivateKey = z.infer<typeof PrivateKey>
type Keys = z.infer<typeof Keys>

/** A master that is not kept by itself: whoever reads the same keys derives the same one. */
function derived(statement: readonly PrivateKey[], purpose: string): string {
  const seed = Buffer.from(statement.at(-1)?.jwk.d ?? '', 'base64url')
  return Buffer.from(hkdfSync('sha256', seed, '', purpose, 32)).toString('base64url')
}

/** What a key is for. A token of one purpose never passes for another. */
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

/** The keys; throws `starting` before the first start has made them. */
async function held(): Promise<Keys> {
  const keys = await stored()
  if (keys === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return keys
}

let masters: { webhook: string; module: string } | undefined

/** How keys are replaced before their time. */
export interface Rotation extends Revocation {
  rotate?: boolean
}

/**
 * Makes sure that keys exist, are published, and that the access key is not older than thirty days. May be repeated, run
 * several times at once, and end halfway: each key is published before anything is signed with it, and stays so until
 * what it signed has expired. Two store calls and two of Secrets Manager; a rotation makes one more of each.
 */
export async function ensureKeys(rotation: Rotation = {}): Promise<void> {
  const old = (await stored()) ?? (await mintAll())
  const [current] = old.access
  const isFresh = current !== undefined && now() - current.createdAtMs < rotateAfterMs
  if (!isFresh || rotation.rotate === true) await replaceAccessKey(old, rotation)
  // Of two rotations at once the secret that was written last is the truth.
  await retireKeys((await stored())?.access[0], rotation)
  signers.clear()
  masters = undefined
}

async function replaceAccessKey(old: Keys, { withdraw = false }: Rotation): Promise<void> {
  const minted = mint()
  await publishKey(minted)
  await failpoint('keys.announced')
  // Its age counts from here on: before, nobody could have read it.
  const access = [{ ...minted, createdAtMs: now() }, ...(withdraw ? [] : untilMature(old.access))]
  await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify({ ...old, access }))
  await failpoint('keys.written')
}

/** Of two first starts at once one makes the keys, and the other takes them: relays and receivers keep what they are told. */
async function mintAll(): Promise<Keys> {
  const first = mint()
  await publishKey(first)
  const minted = { access: [first], statement: [mint()], webhook: newSecret() }
  await createSecretOnce(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(minted))
  return held()
}

/** A key ready to sign with. */
export interface Signer {
  kid: string
  key: CryptoKey
}

const signers = new Map<KeyPurpose, { signer: Signer; untilMs: number }>()
const believedMs = 300_000

/** A key signs once every verifier can know it: no request fails because its token is newer than what somebody has read. */
const signsAfterMs = 2 * keyCacheMs

const isMature = ({ createdAtMs }: PrivateKey): boolean => now() - createdAtMs >= signsAfterMs

/** The newest keys, the last of them one that may sign. */
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

/** What the secrets of webhooks are derived of. One Secrets Manager call per process. */
export const webhookRootKey = async (): Promise<string> => (masters ??= await held()).webhook

/** What the tokens are derived of that the platform and a module's instance know each other by. The same one call. */
export const moduleRootKey = async (): Promise<string> => (masters ??= await held()).module

/** Public keys that verify job statements: a relay pins them when it enrolls (D24). */
export async function statementKeys(): Promise<KeySet> {
  return { keys: (await held()).statement.map(publicKeyOf) }
}
