import { createRoute as declareRoute } from '@hono/zod-openapi'
import type * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import type { Permission } from './permission.ts'

const formType = 'application/x-www-form-urlencoded'

/**
 * Who may call: everyone (`public`), any signed-in user (`user`), a signed-in user without an API token (`session`), a
 * user with a permission, or an enrolled relay with its signed token (`relay`).
 */
export type Access = 'public' | 'user' | 'session' | 'relay' | Permission

/** A capability that an endpoint needs; least-privilege grants in `infra/` follow from it. */
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

/** Media types of a body, each with its schema. A media type without a schema is sent as text. */
type Content = Partial<Record<string, { schema?: z.ZodType }>>

interface RequestDefinition {
  params?: z.ZodObject
  query?: z.ZodObject
  /** Headers that only this endpoint reads; lower-case names, all optional. */
  headers?: z.ZodObject
  body?: { required?: true; content: Partial<Record<'application/json' | typeof formType, { schema: z.ZodObject }>> }
}

/** A successful response. Without `content` it has no body; the first media type is the default. */
export interface ResponseDefinition {
  description: string
  content?: Content
}

/** One operation of the API: the route as `@hono/zod-openapi` declares it, and the policy of the platform for it. */
export type EndpointDefinition = {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Path with `{name}` parameters, `/api/v1` included. */
  path: string
  tags: readonly string[]
  summary: string
  description?: string
  request?: RequestDefinition
  responses: Record<number, ResponseDefinition>
  access: Access
  /** Error codes beyond those that every endpoint with this access may return. */
  errors?: readonly ErrorCode[]
  capabilities?: readonly Capability[]
  /** The use case validates the body, because the order of its checks is part of the contract. */
  validatesBody?: true
  /** Reject cross-origin requests. */
  sameOriginOnly?: true
}

type Unknown<Given, Known> = Record<Exclude<keyof Given, keyof Known>, never>

/** Other members have type `never`, so that a misspelled member does not compile. */
type WithoutUnknown<Given extends EndpointDefinition> = Unknown<Given, EndpointDefinition> & {
  request?: Unknown<Given['request'], RequestDefinition>
  responses: { [Status in keyof Given['responses']]: Unknown<Given['responses'][Status], ResponseDefinition> }
}

/** Declares an endpoint. Keeps literal types, so that a handler with a wrong body or status does not compile. */
export const createRoute = <const Given extends EndpointDefinition>(route: Given & WithoutUnknown<Given>): Given =>
  declareRoute({ ...route, tags: [...route.tags] })

/** The content of a JSON body. */
export const json = <Schema extends z.ZodType>(schema: Schema) => ({ 'application/json': { schema } })

/** A required JSON body of a request. */
export const jsonBody = <Schema extends z.ZodObject>(schema: Schema) =>
  ({ required: true, content: json(schema) }) as const

/** The schema of a JSON request body. */
export const bodySchemaOf = ({ request }: EndpointDefinition): z.ZodObject | undefined =>
  request?.body?.content['application/json']?.schema

/** Whether parameters may be sent as a form body instead of a query, as identity providers do. */
export const takesForm = ({ request }: EndpointDefinition): boolean => request?.body?.content[formType] !== undefined

/** Whether a POST accepts an `Idempotency-Key`. Public and relay endpoints have rules of their own. */
export const isIdempotent = ({ method, access }: EndpointDefinition): boolean =>
  method === 'post' && access !== 'public' && access !== 'relay'

/** Capabilities for authentication: read keys or the token, and record the last use of an API token. */
function neededToAuthenticate(access: Access): readonly Capability[] {
  if (access === 'public') return []
  return access === 'relay' ? ['table:read'] : ['table:read', 'table:write']
}

/** All capabilities of an operation: its own and those of its access and idempotency. */
export const capabilitiesOf = (endpoint: EndpointDefinition): Capability[] => [
  ...new Set<Capability>([
    ...(endpoint.capabilities ?? []),
    ...neededToAuthenticate(endpoint.access),
    ...(isIdempotent(endpoint) ? (['table:read', 'table:write'] as const) : []),
  ]),
]
