import { type Permission } from '@platform/contract/permission'

/** An authenticated user. The first argument of every use case that acts for a user. */
export interface Caller {
  kind: 'user'
  userId: string
  organisationId: string
  /** Empty for an API token. */
  sessionId: string
  /** The API token of the request. */
  tokenId?: string
  permissions: ReadonlySet<Permission>
  /** The network address of the request. */
  address?: string
  /** Set for a request with an `Idempotency-Key`. */
  idempotency?: IdempotentRequest
}

/** A request with an `Idempotency-Key`. The transaction of its change stores the response for repeats. */
export interface IdempotentRequest {
  /** The caller's organisation; a use case may act in another one. */
  organisationId: string
  key: string
  /** Distinguishes another request under the same key. */
  fingerprint: string
  /** The status of its response. */
  status: number
  /** Set once the response is stored. */
  isStored?: true
}

/** An enrolled relay, authenticated by its signed request. */
export interface RelayCaller {
  kind: 'relay'
  relayId: string
  organisationId: string
  clusterId: string
  /** The token's unique id; every use case consumes it, so that requests cannot be replayed. */
  tokenId: string
  issuedAtMs: number
}

/** The platform itself, acting for an organisation: sweeps, consumers, and requests before sign-in. */
export interface System {
  kind: 'system'
  organisationId: string
  address?: string
}

/** The author of a change. */
export type Actor = Caller | RelayCaller | System

export const system = (organisationId: string, address?: string): System => ({
  kind: 'system',
  organisationId,
  ...(address !== undefined && { address }),
})

/** The source of a request, for limits and logs. */
export interface Origin {
  address: string
}
