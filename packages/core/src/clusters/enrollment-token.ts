import { type Enrollment } from '@platform/contract/cluster'
import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { create } from '../db/table.ts'
import { newId, newSecret, sha256 } from '../id.ts'

/**
 * A single-use token has the form `<public id>.<secret>` and is valid for 24 hours. Only the secret's hash is stored.
 */

const enrollmentLifeMs = 24 * 3_600_000
/** Records outlive their tokens, so that late reuse is detected. */
const retentionMs = 7 * 24 * 3_600_000

export const EnrollmentRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  clusterId: z.string(),
  hash: z.string(),
  expiresAtMs: z.number(),
  usedAtMs: z.number().optional(),
  keyThumbprint: z.string().optional(),
  relayId: z.string().optional(),
})
export type EnrollmentRecord = z.infer<typeof EnrollmentRecord>

export function createEnrollmentToken(organisationId: string, clusterId: string) {
  const id = newId('enroll')
  const secret = newSecret()
  const expiresAtMs = now() + enrollmentLifeMs
  const item = {
    id,
    organisationId,
    clusterId,
    hash: sha256(secret),
    expiresAtMs,
    ttl: Math.ceil((expiresAtMs + retentionMs) / 1000),
  }
  return { id, view: enrollmentView(`${id}.${secret}`), write: create(keys.enrollment(id), item) }
}

/**
 * The command downloads the relay from this platform. It passes the token in the environment, because other users can
 * see command arguments.
 */
const enrollmentView = (enrollmentToken: string): Enrollment => ({
  enrollmentToken,
  relayCommand: `curl -fsSL ${config.PLAT_API_URL}/relay/relay.mjs -o platform-relay.mjs && PLAT_ENROLLMENT_TOKEN=${enrollmentToken} node platform-relay.mjs --server ${config.PLAT_API_URL}`,
})
