import { type Permission } from '@platform/contract/permission'
import { type IdempotencyRecorder } from './outbox/idempotency.ts'

/** A signed-in user, as the access token or the API token tells. The first argument of every verb that acts for someone. */
export interface Caller {
  kind: 'user'
  userId: string
  organisationId: string
  /** Empty for an API token. */
  sessionId: string
  /** The API token that the request came with. */
  tokenId?: string
  permissions: ReadonlySet<Permission>
  /** Where the request came from. */
  address?: string
  /** Set where the request may be repeated with its `Idempotency-Key`. */
  once?: IdempotencyRecorder
}

/** An enrolled relay, as its signed request tells (D21). */
export interface RelayCaller {
  kind: 'relay'
  relayId: string
  organisationId: string
  clusterId: string
  /** The token's unique id; every verb records it, so that a request cannot be replayed. */
  tokenId: string
  issuedAtMs: number
}

/** The platform itself, acting for an organisation: sweeps, consumers, and calls before anybody is signed in. */
export interface System {
  kind: 'system'
  organisationId: string
  address?: string
}

/** Whoever changes something of an organisation. */
export type Actor = Caller | RelayCaller | System

/** The platform itself, in an organisation. */
export const system = (organisationId: string, address?: string): System => ({
  kind: 'system',
  organisationId,
  ...(address !== undefined && { address }),
})

/** What a request tells about where it came from, for limits and logs. */
export interface Origin {
  address: string
}
