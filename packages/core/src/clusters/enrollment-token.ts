import type { Enrollment } from '@platform/contract/cluster'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { create, type Item } from '../db/table.ts'
import { newId, newSecret, sha256 } from '../id.ts'
import { PlatformState } from '../platform/state.ts'

/**
 * A single-use token has the form `<public id>.<secret>` and is valid for 24 hours. Only the secret's hash is stored.
 */

const tokenLifetimeMs = 24 * 3_600_000
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

export function createEnrollmentToken(caller: Caller, clusterId: string, platform: Item | undefined) {
  const { organisationId } = caller
  const id = newId('enroll')
  const secret = newSecret()
  const expiresAtMs = now() + tokenLifetimeMs
  const item = {
    id,
    organisationId,
    clusterId,
    hash: sha256(secret),
    expiresAtMs,
    ttl: Math.ceil((expiresAtMs + retentionMs) / 1000),
  }
  return {
    id,
    view: enrollmentView(`${id}.${secret}`, caller, platform),
    write: create(keys.enrollment(id), item),
  }
}

/**
 * The command downloads the relay from this platform. It passes the token in the environment, because other users can
 * see command arguments.
 */
const enrollmentView = (
  enrollmentToken: string,
  caller: Pick<Caller, 'host'>,
  platform: Item | undefined,
): Enrollment => ({
  enrollmentToken,
  relayCommand: relayCommand(caller, platform, `PLAT_ENROLLMENT_TOKEN=${enrollmentToken}`),
})

/** `assignment` sets the environment variable with the token or key. */
export function relayCommand({ host }: Pick<Caller, 'host'>, platform: Item | undefined, assignment: string): string {
  const server = serverUrl(host, platform)
  return `curl -fsSL ${server}/relay/relay.mjs -o platform-relay.mjs && ${assignment} node platform-relay.mjs --server ${server}`
}

/**
 * Returns the public URL if the request was sent to its host, because the command must work in the caller's network.
 * Otherwise returns the configured API URL.
 */
function serverUrl(host: string | undefined, platform: Item | undefined): string {
  const { publicUrl = '' } = PlatformState.parse(platform ?? {})
  const url = URL.parse(publicUrl)
  return url !== null && url.host === host?.toLowerCase() ? url.origin : config.PLAT_API_URL
}
