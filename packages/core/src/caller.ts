import type { Permission } from '@platform/contract/permission'

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
  /** Absent for a request with an API token: such a request reads the token and its user itself. */
  rights?: SessionRights
  address?: string
  /** The host and port to which the request was sent. */
  host?: string
  idempotency?: IdempotentRequest
}

/** Describes the read of a session's rights, at most a minute ago. A lasting effect requires their confirmation. */
export interface SessionRights {
  userVersion: number
  /** The permission that the endpoint requires. */
  permission: Permission | undefined
  isConfirmed?: true
  /** Reads the rights again, and returns the items of `itemKeys`. Throws `unauthenticated` or `forbidden`. */
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
  /** The id of the request's token. A heartbeat stores a hash of this id, to reject a replay. */
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
  /** The device cookie of a browser that signs in; empty if the browser sent none. */
  device?: string
}
