import { type KeySet } from '@platform/contract/relay'
import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'

/**
 * The public halves of the keys that access tokens are signed with, in one item of the table. A key is published before
 * anything is signed with it, and stays so until what it signed has expired.
 */

/** Verifiers read the published keys again for one that they do not know, but not more often than this. */
export const keyCacheMs = 5000

/** Longer than anybody signs with a replaced key, and than what they sign with it lives: five minutes, and fifteen. */
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

/** What of a key everybody may know. */
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

/** Publishes a key that will sign. One call. */
export async function publishKey(key: Key): Promise<void> {
  await transact([upsert(keys.accessKeys(), { set: entry(key) })])
}

/** How keys end before their time. */
export interface Revocation {
  /** Nothing but the current key is believed any more, for when one has leaked: what others have signed ends with them. */
  withdraw?: boolean
}

/** Publishes the key that signs, and takes back those that it has replaced, once what they signed has expired. Two calls. */
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

/** Public keys that verify access tokens, as the table holds them. One call. */
export async function readAccessKeys(): Promise<KeySet> {
  const published = publishedKeys(await get(keys.accessKeys()))
  return {
    keys: published.map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' })),
  }
}
