import { generateKeyPairSync, hkdfSync } from 'node:crypto'
import { type KeySet } from '@platform/contract/relay'
import { type CryptoKey, importJWK } from 'jose'
import * as z from 'zod'
import { now } from './clock.ts'
import { config } from './config.ts'
import * as keys from './db/keys.ts'
import { get, type Item, transact, upsert } from './db/table.ts'
import { fault } from './fault.ts'
import { newSecret } from './id.ts'
import { createSecret, readSecret, writeSecret } from './secret.ts'

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
export type Purpose = 'access' | 'statement'

const rotateAfterMs = 30 * 24 * 3_600_000
/** A replaced access key verifies until the last token that it signed has expired, with a margin. */
const keepReplacedMs = 3_600_000

const mint = (): PrivateKey => ({
  kid: newSecret().slice(0, 16),
  createdAtMs: now(),
  jwk: PrivateJwk.parse(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
})

const publicHalf = ({ kid, jwk }: PrivateKey): KeySet['keys'][number] => ({
  kty: jwk.kty,
  crv: jwk.crv,
  x: jwk.x,
  kid,
  alg: 'EdDSA',
  use: 'sig',
})

async function stored(): Promise<Keys | undefined> {
  const text = await readSecret(config.PLAT_SECRET_SIGNING_KEYS)
  return text === undefined ? undefined : Keys.parse(JSON.parse(text))
}

/** The keys; throws `starting` before the first start has made them. */
async function held(): Promise<Keys> {
  const keys = await stored()
  if (keys === undefined) throw fault('starting', { retryAfterSeconds: 2 })
  return keys
}

let masters: { webhook: string; module: string } | undefined

/** Makes sure that keys exist, are published, and that the access key is not older than thirty days. */
export async function prepareKeys(options: { rotate?: boolean } = {}): Promise<void> {
  const old = (await stored()) ?? (await mintAll())
  const [current] = old.access
  const isFresh = current !== undefined && now() - current.createdAtMs < rotateAfterMs && options.rotate !== true
  const access = isFresh || current === undefined ? old.access : [mint(), current]
  // Published before the first token is signed with it: a verifier never meets a key that it cannot find.
  await publish(access)
  if (!isFresh) {
    await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify({ ...old, access }))
    // Two starts at once: the secret that was written last is the truth, and what it holds must be published.
    await publish((await stored())?.access ?? [])
  }
  signers.clear()
  masters = undefined
}

/** Of two first starts at once one makes the keys, and the other takes them: relays and receivers keep what they are told. */
async function mintAll(): Promise<Keys> {
  const minted = { access: [mint()], statement: [mint()], webhook: newSecret() }
  await publish(minted.access)
  await createSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(minted))
  return held()
}

async function publish(access: readonly PrivateKey[]): Promise<void> {
  const published = publishedKeys(await get(keys.accessKeys()))
  const kept = new Set(access.map((key) => key.kid))
  const dead = published.filter(
    (key) => !kept.has(key.kid) && now() - key.publishedAtMs > rotateAfterMs + keepReplacedMs,
  )
  await transact([
    upsert(keys.accessKeys(), {
      set: Object.fromEntries(
        access.map((key) => [attribute(key.kid), { ...publicHalf(key), publishedAtMs: key.createdAtMs }]),
      ),
      remove: dead.map((key) => attribute(key.kid)),
    }),
  ])
}

const attribute = (kid: string): string => `key:${kid}`

const PublishedKey = z.object({ kid: z.string(), x: z.string(), publishedAtMs: z.number() })

const publishedKeys = (item: Item | undefined) =>
  Object.entries(item ?? {})
    .filter(([name]) => name.startsWith('key:'))
    .map(([, value]) => PublishedKey.parse(value))

/** Public keys that verify access tokens, as the table holds them. One call. */
export async function readAccessKeys(): Promise<KeySet> {
  const published = publishedKeys(await get(keys.accessKeys()))
  return {
    keys: published.map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' })),
  }
}

/** A key ready to sign with. */
export interface Signer {
  kid: string
  key: CryptoKey
}

const signers = new Map<Purpose, { signer: Signer; readAtMs: number }>()
const rereadAfterMs = 300_000

/** The current signing key of a purpose. One Secrets Manager call per process and five minutes. */
export async function signer(purpose: Purpose): Promise<Signer> {
  const known = signers.get(purpose)
  if (known !== undefined && now() - known.readAtMs < rereadAfterMs) return known.signer
  const [key] = (await held())[purpose]
  if (key === undefined) throw fault('starting', { retryAfterSeconds: 2 })
  const fresh = { kid: key.kid, key: await importJWK(key.jwk, 'EdDSA') }
  signers.set(purpose, { signer: fresh, readAtMs: now() })
  return fresh
}

/** What the secrets of webhooks are derived of. One Secrets Manager call per process. */
export const webhookMaster = async (): Promise<string> => (masters ??= await held()).webhook

/** What the tokens are derived of that the platform and a module's instance know each other by. The same one call. */
export const moduleMaster = async (): Promise<string> => (masters ??= await held()).module

/** Public keys that verify job statements: a relay pins them when it enrolls (D24). */
export async function statementKeys(): Promise<KeySet> {
  return { keys: (await held()).statement.map(publicHalf) }
}
