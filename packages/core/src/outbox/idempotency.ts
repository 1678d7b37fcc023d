import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, orThrow, replace, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { sha256 } from '../id.ts'

/**
 * Requests that may be repeated (D28): the first answer is kept for 24 hours under the caller's `Idempotency-Key`, in the
 * transaction that does the work, so that the two happen together or not at all. What is kept may hold a secret that is
 * shown once, and tells a password by its hash; it is encrypted with a key that only the holder of the
 * `Idempotency-Key` can derive.
 */

const keepSeconds = 24 * 3600
/** More does not fit into an item. */
const keptBytes = 390_000

/** A request that carries a key. */
export interface IdempotentRequest {
  key: string
  /** Tells another request under the same key. */
  fingerprint: string
}

/** An answer that was given before. */
export interface StoredResponse {
  status: number
  body?: unknown
}

/** What a verb does with a repeatable request: its transaction keeps the answer, once in a request. */
export interface IdempotencyRecorder {
  /** The step that keeps the answer. */
  step: (answer: unknown) => WriteItem
  /** Says that the transaction with the step has happened. */
  happened: () => void
}

const Row = z.object({ sealed: z.instanceof(Uint8Array), expiresAtMs: z.number() })
const Sealed = z.object({ fingerprint: z.string(), status: z.number(), body: z.unknown().optional() })

const keyOf = ({ organisationId, userId }: Caller, { key }: IdempotentRequest) =>
  keys.idempotencyRecord(organisationId, sha256(JSON.stringify([userId, key])))

/** The answer to an earlier request with the same key. Throws `idempotency_key_reused` for another request. One call. */
export async function findStoredResponse(
  caller: Caller,
  request: IdempotentRequest,
): Promise<StoredResponse | undefined> {
  const item = await get(keyOf(caller, request))
  const row = item && Row.parse(item)
  if (row === undefined || row.expiresAtMs <= now()) return undefined
  const { fingerprint, ...answer } = Sealed.parse(JSON.parse(unseal(request.key, row.sealed)))
  if (fingerprint !== request.fingerprint) throw platformError('idempotency_key_reused')
  return answer
}

/** The step that keeps an answer. An expired one that the store has not forgotten yet makes room. */
export function storeResponseWrite(
  caller: Caller,
  { key, fingerprint }: IdempotentRequest,
  answer: StoredResponse,
): WriteItem {
  const item = {
    sealed: seal(key, JSON.stringify({ fingerprint, ...answer })),
    expiresAtMs: now() + keepSeconds * 1000,
    ttl: nowSeconds() + keepSeconds,
  }
  const isFree = { expiresAtMs: { absentOrAtMost: now() } }
  return orThrow(replace(keyOf(caller, { key, fingerprint }), item, isFree), 'conflict')
}

/**
 * Keeps the answer of a verb that has not kept it itself, because repeating it changes nothing. Answers what a repeat was
 * faster to keep, if there was one. One call, two after a lost race.
 */
export async function storeResponse(
  caller: Caller,
  request: IdempotentRequest,
  answer: StoredResponse,
): Promise<StoredResponse | undefined> {
  if (Buffer.byteLength(JSON.stringify(answer)) > keptBytes) return undefined
  const { write } = storeResponseWrite(caller, request, answer)
  return (await transact([{ write }])) && findStoredResponse(caller, request)
}

const cipher = 'aes-256-gcm'
const [saltBytes, nonceBytes, tagBytes] = [16, 12, 16]

const secretOf = (key: string, salt: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', key, salt, 'kept answer', 32))

function seal(key: string, text: string): Uint8Array {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)]
  const sealing = createCipheriv(cipher, secretOf(key, salt), nonce)
  const body = [sealing.update(text, 'utf8'), sealing.final()]
  return Buffer.concat([salt, nonce, sealing.getAuthTag(), ...body])
}

function unseal(key: string, sealed: Uint8Array): string {
  let from = 0
  const take = (bytes: number): Uint8Array => sealed.subarray(from, (from += bytes))
  const [salt, nonce, tag, body] = [take(saltBytes), take(nonceBytes), take(tagBytes), take(sealed.length)]
  const opening = createDecipheriv(cipher, secretOf(key, salt), nonce, { authTagLength: tagBytes }).setAuthTag(tag)
  return Buffer.concat([opening.update(body), opening.final()]).toString('utf8')
}
