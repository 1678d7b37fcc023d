import { type Permission } from '@platform/contract/permission'

/** The first argument of every use case that acts for a user. */
export interface Caller {
  kind: 'user'
  userId: string
  organisationId: string
  /** Empty if the request has an API token. */
  sessionId: string
  /** Set if the request has an API token. */
  tokenId?: string
  permissions: ReadonlySet<Permission>
  /** The IP address of the client. */
  address?: string
  /** Set if the request has an `Idempotency-Key`. */
  idempotency?: IdempotentRequest
}

/** The transaction of the change stores the response, which repeats of the request then receive. */
export interface IdempotentRequest {
  /** The caller's organisation, even if the use case changes another one. */
  organisationId: string
  key: string
  /** A hash of the request; detects a different request with the same key. */
  fingerprint: string
  /** The HTTP status of the stored response. */
  status: number
  isStored?: true
}

export interface RelayCaller {
  kind: 'relay'
  relayId: string
  organisationId: string
  clusterId: string
  /** The unique id of the request's token. Every use case consumes it, so that requests cannot be replayed. */
  tokenId: string
  issuedAtMs: number
}

/** The platform itself, acting for an organisation: the sweep, queue workers, and requests before sign-in. */
export interface System {
  kind: 'system'
  organisationId: string
  address?: string
}

export type Actor = Caller | RelayCaller | System

export const system = (organisationId: string, address?: string): System => ({
  kind: 'system',
  organisationId,
  ...(address !== undefined && { address }),
})

/** Identifies the sender for rate limits and logs. */
export interface Origin {
  address: string
}
