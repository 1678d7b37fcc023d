import type { AuditCheckpoint } from '@platform/contract/audit'
import { CompactSign, compactVerify, errors, importJWK } from 'jose'
import * as z from 'zod'
import { iso, nowSeconds } from '../clock.ts'
import type { Caller } from '../caller.ts'
import { validationFailedError } from '../error.ts'
import { auditKey } from '../signing/audit-key.ts'
import { publicKeyOf } from '../signing/published-keys.ts'
import { type AuditHead, readAuditHead } from './projection.ts'

/** A checkpoint is the signed number and hash of a trail's newest entry. A copy reveals later truncation. */

const typ = 'audit-checkpoint+jws'

const Claims = z.object({ organisationId: z.string(), seq: z.int().min(0), hash: z.string(), iat: z.number() })
export type CheckpointClaims = z.infer<typeof Claims>

export async function signCheckpoint(organisationId: string, { seq, hash }: AuditHead): Promise<string> {
  const { kid, jwk } = await auditKey()
  const claims: CheckpointClaims = { organisationId, seq, hash, iat: nowSeconds() }
  return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'EdDSA', typ, kid })
    .sign(await importJWK(jwk, 'EdDSA'))
}

export async function checkpoint({ organisationId }: Caller): Promise<AuditCheckpoint> {
  const head = await readAuditHead(organisationId)
  const [jws, key] = [await signCheckpoint(organisationId, head), await auditKey()]
  return { checkpoint: jws, seq: head.seq, hash: head.hash, at: iso(nowSeconds() * 1000), key: publicKeyOf(key) }
}

/** Throws `validation_failed` unless this platform signed the checkpoint for the organisation. */
export async function readCheckpoint(organisationId: string, jws: string): Promise<CheckpointClaims> {
  try {
    const { jwk } = await auditKey()
    const { kty, crv, x } = jwk
    const { payload, protectedHeader } = await compactVerify(jws, await importJWK({ kty, crv, x }, 'EdDSA'), {
      algorithms: ['EdDSA'],
    })
    const claims = Claims.safeParse(JSON.parse(new TextDecoder().decode(payload)))
    if (protectedHeader.typ === typ && claims.data?.organisationId === organisationId) return claims.data
  } catch (error) {
    if (!(error instanceof errors.JOSEError || error instanceof SyntaxError || error instanceof TypeError)) throw error
  }
  const message = 'must be a checkpoint that this platform has signed for this organisation'
  throw validationFailedError([{ in: 'query', path: '/checkpoint', code: 'invalid_signature', message }])
}
