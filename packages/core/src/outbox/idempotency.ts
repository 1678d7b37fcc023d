import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { Caller, IdempotentRequest } from '../caller.ts'
import { now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, orThrow, replace, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { sha256 } from '../id.ts'
import { compress, decompress } from '../lib/compression.ts'

/**
 * Responses are stored for 24 hours under the caller's `Idempotency-Key`, in the transaction of the change. They may
 * contain one-time secrets, so they are encrypted with a key derived from the `Idempotency-Key`.
 */

const retentionSeconds = 24 * 3600
/** `storeResponse` does not store larger responses, because they may not fit into an item. */
const maxResponseBytes = 390_000

export interface StoredResponse {
  status: number
  body?: unknown
}

const IdempotencyRecord = z.object({ sealed: z.instanceof(Uint8Array), expiresAtMs: z.number() })
const SealedResponse = z.object({ fingerprint: z.string(), status: z.number(), body: z.unknown().optional() })

const keyOf = ({ userId }: Caller, { organisationId, key }: IdempotentRequest) =>
  keys.idempotencyRecord(organisationId, sha256(JSON.stringify([userId, key])))

/**
 * Also confirms the rights of the caller's session, which takes no further call. If the session has lost them, a repeat
 * still receives its response, and the commit of a new request fails. Throws `idempotency_key_reused` if the key
 * belongs to a different request.
 */
export async function findStoredResponse(
  caller: Caller,
  request: IdempotentRequest,
): Promise<StoredResponse | undefined> {
  const key = keyOf(caller, request)
  const rights = caller.rights?.isConfirmed ? undefined : caller.rights
  const [item] = (await rights?.confirm([key]).catch(() => undefined)) ?? [await get(key)]
  const record = item && IdempotencyRecord.parse(item)
  if (record === undefined || record.expiresAtMs <= now()) return undefined
  const { fingerprint, ...response } = SealedResponse.parse(JSON.parse(decompress(unseal(request.key, record.sealed))))
  if (fingerprint !== request.fingerprint) throw platformError('idempotency_key_reused')
  return response
}

/**
 * Returns the write of a response, which also replaces an expired one. The write throws `conflict` if an unexpired
 * response is stored.
 */
export function storeResponseWrite(caller: Caller, request: IdempotentRequest, response: StoredResponse): WriteItem {
  const { key, fingerprint } = request
  const item = {
    sealed: seal(key, compress(JSON.stringify({ fingerprint, ...response }))),
    expiresAtMs: now() + retentionSeconds * 1000,
    ttl: nowSeconds() + retentionSeconds,
  }
  const unusedCondition = { expiresAtMs: { absentOrAtMost: now() } }
  return orThrow(replace(keyOf(caller, request), item, unusedCondition), 'conflict')
}

/**
 * Stores the response of a request without a change, which is safe to repeat. Returns the stored response if a
 * concurrent repeat was faster.
 */
export async function storeResponse(
  caller: Caller,
  request: IdempotentRequest,
  response: StoredResponse,
): Promise<StoredResponse | undefined> {
  if (Buffer.byteLength(JSON.stringify(response)) > maxResponseBytes) return undefined
  const { write } = storeResponseWrite(caller, request, response)
  return (await transact([{ write }])) && findStoredResponse(caller, request)
}

const cipher = 'aes-256-gcm'
const [saltBytes, nonceBytes, tagBytes] = [16, 12, 16]

const keyFor = (key: string, salt: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', key, salt, 'kept answer', 32))

export function seal(key: string, bytes: Uint8Array): Uint8Array {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)]
  const encryption = createCipheriv(cipher, keyFor(key, salt), nonce)
  const body = [encryption.update(bytes), encryption.final()]
  return Buffer.concat([salt, nonce, encryption.getAuthTag(), ...body])
}

/** Throws if the key is wrong. */
export function unseal(key: string, sealedBytes: Uint8Array): Uint8Array {
  let from = 0
  const take = (count: number): Uint8Array => sealedBytes.subarray(from, (from += count))
  const [salt, nonce, tag, body] = [take(saltBytes), take(nonceBytes), take(tagBytes), take(sealedBytes.length)]
  const decryption = createDecipheriv(cipher, keyFor(key, salt), nonce, { authTagLength: tagBytes }).setAuthTag(tag)
  return Buffer.concat([decryption.update(body), decryption.final()])
}
