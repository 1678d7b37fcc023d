import { createHash, type KeyObject, randomUUID } from 'node:crypto'
import { nowSeconds } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { relayAudience } from '@platform/core/relays/request-auth'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { SignJWT } from 'jose'
import { callerOf } from './world.ts'

/** The header of a user with these roles; of a fresh organisation where none is given. */
export async function bearer(roles: [string], organisationId = newId('org')): Promise<{ authorization: string }> {
  const caller = await callerOf(organisationId, ...roles)
  return { authorization: `Bearer ${await issueAccessToken({ ...caller, roles })}` }
}

/** The header of a relay that sends this body to this path. */
export async function relayToken(
  relayId: string,
  key: KeyObject,
  path: string,
  body = '',
): Promise<{ authorization: string }> {
  const bodySha256 = createHash('sha256').update(body).digest('base64url')
  const token = await new SignJWT({ path, bodySha256 })
    .setProtectedHeader({ alg: 'EdDSA', kid: relayId })
    .setAudience(relayAudience)
    .setJti(randomUUID())
    .setIssuedAt(nowSeconds())
    .setExpirationTime(nowSeconds() + 30)
    .sign(key)
  return { authorization: `Relay ${token}` }
}
