import { type KeySet } from '@platform/contract/relay'
import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'

/**
 * The public keys of access tokens, in one item of the table. A key is published before its first signature, until its
 * tokens have expired.
 */

/** Verifiers reload the published keys for an unknown key id, at most this often. */
export const keyCacheMs = 5000

/** Longer than a replaced key signs (five minutes) and its tokens live (fifteen). */
const keepReplacedMs = 3_600_000

interface Key {
  kid: string
  createdAtMs: number
  jwk: { kty: 'OKP'; crv: 'Ed25519'; x: string }
}

const PublishedKey = z.looseObject({
  kid: z.string(),
  x: z.string(),
  publishedAtMs: z.number(),
  replacedAtMs: z.number().optional(),
})
type PublishedKey = z.infer<typeof PublishedKey>

/** The public part of a key. */
export const publicKeyOf = ({ kid, jwk }: Key): KeySet['keys'][number] => ({
  kty: jwk.kty,
  crv: jwk.crv,
  x: jwk.x,
  kid,
  alg: 'EdDSA',
  use: 'sig',
})

const attribute = (kid: string): string => `key:${kid}`

const entry = (key: Key) => ({ [attribute(key.kid)]: { ...publicKeyOf(key), publishedAtMs: key.createdAtMs } })

const publishedKeys = (item: Item | undefined): PublishedKey[] =>
  Object.entries(item ?? {})
    .filter(([name]) => name.startsWith('key:'))
    .map(([, value]) => PublishedKey.parse(value))

/** Publishes a key before it signs. One call. */
export async function publishKey(key: Key): Promise<void> {
  await transact([upsert(keys.accessKeys(), { set: entry(key) })])
}

/** Options for ending keys early. */
export interface Revocation {
  /** Revokes all keys but the current one, after a leak: their tokens become invalid. */
  withdraw?: boolean
}

/** Publishes the signing key, and removes replaced ones once their tokens have expired. Two calls. */
export async function retireKeys(current: Key | undefined, { withdraw = false }: Revocation): Promise<void> {
  if (current === undefined) return
  const replaced = publishedKeys(await get(keys.accessKeys())).filter(({ kid }) => kid !== current.kid)
  const isDead = ({ replacedAtMs = now() }: PublishedKey) => withdraw || now() - replacedAtMs > keepReplacedMs
  const ending = replaced.filter((key) => !isDead(key) && key.replacedAtMs === undefined)
  const ended = ending.map((key) => [attribute(key.kid), Object.assign(key, { replacedAtMs: now() })])
  await transact([
    upsert(keys.accessKeys(), {
      set: { ...entry(current), ...Object.fromEntries(ended) },
      remove: replaced.filter(isDead).map((key) => attribute(key.kid)),
    }),
  ])
}

/** The public keys of access tokens. One call. */
export async function readAccessKeys(): Promise<KeySet> {
  const published = publishedKeys(await get(keys.accessKeys()))
  return {
    keys: published.map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' })),
  }
}
