import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { type Item, orThrow, patch } from '../db/table.ts'
import { commit } from '../outbox/commit.ts'
import { seal, unseal } from '../outbox/idempotency.ts'
import { renewCredential } from './credential.ts'
import { endSessions, find, type User, userUnchanged } from './user.ts'

/** The minimum time between two checks of a session's user at the identity provider. */
export const checkIntervalMs = 15 * 60_000
const dayMs = 24 * 3_600_000
/** The maximum age of the last confirmation while the provider cannot confirm the user. */
export const maxUnconfirmedMs = dayMs
/**
 * API tokens remain valid for at least 30 days after the last confirmation, because a program cannot sign in again. The
 * stored time may be up to a day earlier than the last confirmation.
 */
export const maxUnconfirmedTokenMs = 31 * dayMs

export const lastConfirmationMs = ({ confirmedAtMs, createdAtMs }: User): number => confirmedAtMs ?? createdAtMs

/** Returns undefined if the last confirmation is less than a day old, to limit the number of writes. */
export const newConfirmation = (user: User): { confirmedAtMs: number } | undefined =>
  isWithin(lastConfirmationMs(user), dayMs) ? undefined : { confirmedAtMs: now() }

/** A refresh token of an OpenID provider. The provider rejects the token once the user is removed or disabled. */
export const ProviderGrant = z.object({
  refreshToken: z.string(),
  expiresAtMs: z.number().optional(),
  /** Set until the response to a use is stored. If the response is lost, the provider may have replaced the token. */
  isInUse: z.literal(true).optional(),
})
export type ProviderGrant = z.infer<typeof ProviderGrant>

/**
 * Encrypts the grant with a secret of the client (a refresh token or a code). The table contains only a hash of the
 * secret.
 */
export const sealGrant = (grant: ProviderGrant | undefined, secret: string): { grant?: Uint8Array } =>
  grant === undefined ? {} : { grant: seal(secret, Buffer.from(JSON.stringify(grant))) }

export const unsealGrant = (sealedGrant: Uint8Array | undefined, secret: string): ProviderGrant | undefined =>
  sealedGrant && ProviderGrant.parse(JSON.parse(Buffer.from(unseal(secret, sealedGrant)).toString()))

export type Confirmation =
  | { status: 'confirmed'; grant?: ProviderGrant | undefined }
  | { status: 'withdrawn'; reason: string }
  | { status: 'unknown' }

/** Asks the identity provider whether the user is still valid. Returns `unknown` if this check is not possible. */
export type Confirm = (
  user: User,
  provider: Item,
  grant: ProviderGrant | undefined,
  origin: Origin | undefined,
) => Promise<Confirmation>

/**
 * Ends all sessions of the user. The API tokens are rejected until the user signs in with the provider again, which
 * removes `suspendedAtMs`.
 */
export const suspend = (organisationId: string, userId: string, reason: string, origin?: Origin): Promise<true> =>
  retryOnConflict(async () => {
    const user = await find(organisationId, userId)
    if (user === undefined) return true
    const isSuspended = user.suspendedAtMs !== undefined
    // Also needed if the user is already suspended: a sign-in that began earlier may have opened another session.
    const change = { ...endSessions(), set: { suspendedAtMs: user.suspendedAtMs ?? now() } }
    const { username, displayName } = user
    const failure = await commit(system(organisationId, origin?.address), {
      writes: [
        patch(keys.user(organisationId, userId), change, userUnchanged(user)),
        orThrow(renewCredential(user), 'conflict'),
      ],
      audit: { action: 'user.suspend', resource: userId, detail: reason },
      events: isSuspended
        ? []
        : [
            {
              name: 'user.suspended',
              subject: userId,
              data: { userId, username, ...(displayName && { displayName }), reason },
            },
          ],
    })
    return failure === undefined ? true : undefined
  })
