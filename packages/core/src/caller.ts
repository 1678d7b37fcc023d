import { type Permission } from '@platform/contract/permission'

export interface Caller {
  kind: 'user'
  userId: string
  organisationId: string
  /** Empty if the request has an API token. */
  sessionId: string
  tokenId?: string
  permissions: ReadonlySet<Permission>
  address?: string
  /** The host and port that the request names. */
  host?: string
  /** Set if the request has an `Idempotency-Key`. */
  idempotency?: IdempotentRequest
}

/** A request with an `Idempotency-Key`. Repeats receive the response that the first request's transaction stored. */
export interface IdempotentRequest {
  /** The caller's organisation, even if the use case changes another one. */
  organisationId: string
  key: string
  /** A hash of the request; detects a different request with the same key. */
  fingerprint: string
  status: number
  isStored?: true
}

export interface RelayCaller {
  kind: 'relay'
  relayId: string
  organisationId: string
  clusterId: string
  /** Every use case consumes this id of the request's token, so that requests cannot be replayed. */
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

export interface Origin {
  address: string
}
