import { createRoute as declareRoute } from '@hono/zod-openapi'
import type * as z from 'zod'
import type { ErrorCode } from './errors.ts'
import type { Permission } from './permission.ts'

const formType = 'application/x-www-form-urlencoded'

/**
 * Who may call an endpoint: everyone (`public`), any signed-in user (`user`), a signed-in user without an API token
 * (`session`), a user with the given permission, or an enrolled relay with its signed token (`relay`).
 */
export type Access = 'public' | 'user' | 'session' | 'relay' | Permission

/** A capability of a function. `infra/` derives the least-privilege IAM grants of the function from it. */
export type Capability =
  | 'table:read'
  | 'table:write'
  | 'queue:batches'
  | 'queue:events'
  | 'queue:webhooks'
  | 'queue:installs'
  | 'queue:updates'
  | 'queue:modules'
  | 'secret:access-keys'
  | 'secret:module-token-keys'
  | 'secret:statement-keys'
  | 'secret:webhook-key'
  | 'secret:module-key'
  | 'secret:audit-key'
  | 'secret:keys-write'
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
  | 'audit:checkpoints'
  | 'channel:wake'
  | 'asset:relay'

// A media type without a schema has a body that is not JSON.
type Content = Partial<Record<string, { schema?: z.ZodType }>>

interface RequestDefinition {
  params?: z.ZodObject
  query?: z.ZodObject
  /** Headers that not every endpoint reads. Names are lower-case, and all headers are optional. */
  headers?: z.ZodObject
  body?: { required?: true; content: Partial<Record<'application/json' | typeof formType, { schema: z.ZodObject }>> }
}

/** A response of an endpoint. Without `content` it has no body; the first media type is the default. */
export interface ResponseDefinition {
  description: string
  content?: Content
}

/** One operation of the API: the route as `@hono/zod-openapi` declares it, with the platform's access rules. */
export type EndpointDefinition = {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Path with `{name}` parameters, including `/api/v1`. */
  path: string
  tags: readonly string[]
  summary: string
  description?: string
  request?: RequestDefinition
  responses: Record<number, ResponseDefinition>
  access: Access
  /** Error codes in addition to those that every endpoint with this access can return. */
  errors?: readonly ErrorCode[]
  capabilities?: readonly Capability[]
  /** The use case validates the body itself, because the API guarantees the order of its checks. */
  validatesBody?: true
  /** The POST changes nothing, so its response is not stored for an `Idempotency-Key`. */
  readsOnly?: true
  /** Rejects requests from pages of other origins. */
  sameOriginOnly?: true
  /** Maximum size of the body: by default 64 KiB for public endpoints and 4 MiB for others. */
  maxBodyBytes?: number
}

type UnknownMembers<Given, Known> = Record<Exclude<keyof Given, keyof Known>, never>

// Unknown members have type `never`, so that a misspelled member does not compile.
type WithoutUnknown<Given extends EndpointDefinition> = UnknownMembers<Given, EndpointDefinition> & {
  request?: UnknownMembers<Given['request'], RequestDefinition>
  responses: { [Status in keyof Given['responses']]: UnknownMembers<Given['responses'][Status], ResponseDefinition> }
}

/** Declares an endpoint. Keeps literal types, so that a handler with a wrong body or status does not compile. */
export const createRoute = <const Given extends EndpointDefinition>(route: Given & WithoutUnknown<Given>): Given =>
  declareRoute({ ...route, tags: [...route.tags] })

export const json = <Schema extends z.ZodType>(schema: Schema) => ({ 'application/json': { schema } })

/** Declares a required JSON body of a request. */
export const jsonBody = <Schema extends z.ZodObject>(schema: Schema) =>
  ({ required: true, content: json(schema) }) as const

/** Returns the schema of the JSON body; undefined without a body, or if parameters may be sent as a form. */
export const bodySchemaOf = (endpoint: EndpointDefinition): z.ZodObject | undefined =>
  takesForm(endpoint) ? undefined : endpoint.request?.body?.content['application/json']?.schema

/** Whether a request may omit its JSON body, which then counts as `{}`. */
export const mayOmitBody = (endpoint: EndpointDefinition): boolean =>
  endpoint.method === 'post' && bodySchemaOf(endpoint)?.safeParse({}).success === true

/**
 * Whether requests may have unknown parameters and members. Relays may have another version than the platform, and
 * caches may add parameters to requests for files.
 */
export const allowsUnknownInput = ({ path }: EndpointDefinition): boolean =>
  path.startsWith('/api/v1/relay/') || !/^\/(api|health)\//.test(path)

/**
 * Whether parameters may be sent in the body, as a form or JSON, instead of in the query. Some identity providers send
 * them in the body.
 */
export const takesForm = ({ request }: EndpointDefinition): boolean => request?.body?.content[formType] !== undefined

/** Whether responses are stored for an `Idempotency-Key`. Refreshes and claims handle the key in their use cases. */
export const isIdempotent = ({ method, access, readsOnly }: EndpointDefinition): boolean =>
  method === 'post' && readsOnly !== true && access !== 'public' && access !== 'relay'

// Authentication reads keys or the token, stores the last use of an API token, and records denied calls.
function authenticationCapabilities(access: Access): readonly Capability[] {
  if (access === 'public') return []
  return access === 'relay' ? ['table:read'] : ['table:read', 'table:write', 'queue:events']
}

/** Returns all capabilities of an endpoint, including those for authentication and idempotency. */
export const capabilitiesOf = (endpoint: EndpointDefinition): Capability[] => [
  ...new Set<Capability>([
    ...(endpoint.capabilities ?? []),
    ...authenticationCapabilities(endpoint.access),
    ...(isIdempotent(endpoint) ? (['table:read', 'table:write'] as const) : []),
  ]),
]
