import { type Permission } from '@platform/contract/permission'

export interface Caller {
  kind: 'user'
  userId: string
  /** Set once the user's record has been read. */
  username?: string
  organisationId: string
  /** Empty if the request has an API token, and before sign-in. */
  sessionId: string
  tokenId?: string
  permissions: ReadonlySet<Permission>
  /** Set for requests with an access token. API tokens and their users are read at each request. */
  rights?: SessionRights
  address?: string
  /** The host and port that the request names. */
  host?: string
  /** Set if the request has an `Idempotency-Key`. */
  idempotency?: IdempotentRequest
}

/** The rights of a session as read at most a minute ago. They must be confirmed before a lasting effect. */
export interface SessionRights {
  userVersion: number
  /** The permission that the endpoint requires. */
  permission: Permission | undefined
  isConfirmed?: true
  /** Reads the rights again, and returns further items of the same read. Throws `unauthenticated` or `forbidden`. */
  confirm: (itemKeys?: readonly { pk: string; sk: string }[]) => Promise<(Record<string, unknown> | undefined)[]>
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
  /** The id of the request's token. A heartbeat stores this id, so that the token cannot be replayed. */
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
  /** The device cookie of a browser that signs in; empty if it sent none. */
  device?: string
}
