import type { KeySet } from '@platform/contract/relay'
import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, type Item, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import type { TokenKind } from './private-key.ts'

/**
 * One item holds the public keys of access tokens, and another those of tokens for modules. A key is published before
 * its first signature and stays published until its tokens have expired or it is withdrawn.
 */

/** Verifiers reload the published keys for an unknown key id, at most this often. */
export const keyCacheMs = 5000

/** A replaced key signs for up to five minutes, and its tokens are valid for fifteen. */
const retentionMs = 3_600_000

interface SigningKey {
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

export const publicKeyOf = ({ kid, jwk }: SigningKey): KeySet['keys'][number] => ({
  kty: jwk.kty,
  crv: jwk.crv,
  x: jwk.x,
  kid,
  alg: 'EdDSA',
  use: 'sig',
})

const attributeOf = (kid: string): string => `key:${kid}`

const attributesOf = (key: SigningKey) => ({
  [attributeOf(key.kid)]: { ...publicKeyOf(key), publishedAtMs: key.createdAtMs },
})

const publishedKeys = (item: Item | undefined): PublishedKey[] =>
  Object.entries(item ?? {})
    .filter(([name]) => name.startsWith('key:'))
    .map(([, value]) => PublishedKey.parse(value))

export async function publishKey(kind: TokenKind, key: SigningKey): Promise<void> {
  await transact([upsert(keys.tokenKeys(kind), { set: attributesOf(key) })])
}

export interface Revocation {
  /** Revokes all keys but the current one after a leak. Verifiers reject their tokens once they read the keys again. */
  withdraw?: boolean
}

export async function retireKeys(
  kind: TokenKind,
  currentKey: SigningKey | undefined,
  { withdraw = false }: Revocation,
): Promise<void> {
  if (currentKey === undefined) return
  const replacedKeys = publishedKeys(await get(keys.tokenKeys(kind))).filter(({ kid }) => kid !== currentKey.kid)
  const isExpired = ({ replacedAtMs = now() }: PublishedKey) => withdraw || now() - replacedAtMs > retentionMs
  const newlyReplaced = replacedKeys.filter((key) => !isExpired(key) && key.replacedAtMs === undefined)
  const replacements = newlyReplaced.map((key) => [attributeOf(key.kid), Object.assign(key, { replacedAtMs: now() })])
  await transact([
    upsert(keys.tokenKeys(kind), {
      set: { ...attributesOf(currentKey), ...Object.fromEntries(replacements) },
      remove: replacedKeys.filter(isExpired).map((key) => attributeOf(key.kid)),
    }),
  ])
}

const keySetOf = (items: readonly (Item | undefined)[]): KeySet => ({
  keys: items
    .flatMap(publishedKeys)
    .map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' })),
})

export const readAccessKeys = async (): Promise<KeySet> => keySetOf([await get(keys.tokenKeys('access'))])

export const readPublicKeys = async (): Promise<KeySet> =>
  keySetOf(await getConsistent([keys.tokenKeys('access'), keys.tokenKeys('module')]))
