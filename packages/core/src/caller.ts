import { type Permission } from '@platform/contract/permission'

/** A signed-in user, as the access token tells. The first argument of every verb that acts for someone. */
export interface Caller {
  kind: 'user'
  userId: string
  organisationId: string
  sessionId: string
  permissions: ReadonlySet<Permission>
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

/** What a request tells about where it came from, for limits and logs. */
export interface Origin {
  address: string
}
