import type * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import type { Permission } from './permission.ts'

/**
 * Who may call: anybody (`public`), any signed-in user (`user`), one who signed in and does not use an API token
 * (`session`, D16), a user holding a permission, or an enrolled relay with its signed token (D21).
 */
export type Access = 'public' | 'user' | 'session' | 'relay' | Permission

/** What an endpoint needs of the platform: the source of least-privilege grants in `infra/`. */
export type Capability =
  | 'table:read'
  | 'table:write'
  | 'queue:jobs'
  | 'queue:batches'
  | 'queue:events'
  | 'queue:webhooks'
  | 'queue:updates'
  | 'queue:modules'
  | 'secret:signing-keys'
  | 'secret:signing-keys-write'
  | 'secret:initial-admin-token'
  | 'secret:initial-admin-token-write'
  | 'secret:registries'
  | 'secret:identity'
  | 'secret:identity-write'
  | 'secret:identity-remove'
  | 'modules:deploy'
  | 'modules:remove'
  | 'modules:invoke'
  | 'functions:update'
  | 'functions:revert'
  | 'asset:relay'

/** One successful answer. Without `schema` it has no body; `contentType` marks a body that is not JSON. */
export interface ResponseDefinition {
  description: string
  schema?: z.ZodType
  contentType?: string
  /** Where the request chooses among several. */
  otherContentTypes?: readonly string[]
}

/** All that the platform promises about one operation, as a plain value that everything else reads. */
export interface EndpointDefinition {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path with `{name}` parameters, `/api/v1` included. */
  path: string
  access: Access
  tag: string
  summary: string
  description?: string
  request?: {
    params?: z.ZodObject
    query?: z.ZodObject
    /** What stands in the query may stand in a form instead, as browsers send it from the page of somebody else. */
    queryInForm?: true
    body?: z.ZodObject
    /** Headers that the endpoint reads; lower-case names, all optional. Everything else about headers is the same everywhere. */
    headers?: z.ZodObject
    /** The verb validates the body itself, because the order of its checks is part of the contract (D2). */
    bodyCheckedByVerb?: true
  }
  /** A request may wait for something to happen, while others of its organisation are worked on. */
  mayWait?: true
  /** For pages of the platform's own origin: a request that any other page may have caused is refused. */
  sameOriginOnly?: true
  responses: Record<number, ResponseDefinition>
  /** Codes beyond those that every endpoint of its access may answer. */
  fails?: readonly ErrorCode[]
  uses?: readonly Capability[]
}

/** Declares an endpoint; the literal types are kept, so that a wrong body or status does not compile. */
export const endpoint = <const Definition extends EndpointDefinition>(definition: Definition): Definition => definition

/** Whether a POST may be repeated with an `Idempotency-Key` (D28). Public ones and those of relays have rules of their own. */
export const isIdempotent = ({ method, access }: EndpointDefinition): boolean =>
  method === 'POST' && access !== 'public' && access !== 'relay'

/** What knowing a caller takes: keys or the token are read, and the hour that an API token was used in is noted. */
function neededToAuthenticate(access: Access): readonly Capability[] {
  if (access === 'public') return []
  return access === 'relay' ? ['table:read'] : ['table:read', 'table:write']
}

/** All that an operation needs of the platform: what it names, and what its access and its repeats bring. */
export const capabilitiesOf = (endpoint: EndpointDefinition): Capability[] => [
  ...new Set<Capability>([
    ...(endpoint.uses ?? []),
    ...neededToAuthenticate(endpoint.access),
    ...(isIdempotent(endpoint) ? (['table:read', 'table:write'] as const) : []),
  ]),
]
