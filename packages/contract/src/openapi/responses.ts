import type { EndpointDefinition, ResponseDefinition } from '../endpoint.ts'
import { type ErrorCode, messageOf, statusOf, wireCodeOf } from '../errors.ts'
import { errorCodesOf } from '../failures.ts'

const integer = (minimum: number, maximum: number, example: number) => ({
  type: 'integer' as const,
  format: 'int32',
  minimum,
  maximum,
  example,
})
const countSchema = (example: number) => integer(0, 2 ** 31 - 1, example)
const traceId = { type: 'string' as const, pattern: '^[0-9a-f]{32}$', maxLength: 32 }

export const headers = {
  'X-Trace-Id': { description: 'Identifies the request in the logs of the platform', required: true, schema: traceId },
  'RateLimit-Limit': { description: 'Requests allowed per window', schema: countSchema(600) },
  'RateLimit-Remaining': { description: 'Requests remaining in the window', schema: countSchema(599) },
  'RateLimit-Reset': { description: 'Seconds until the limit is fully restored', schema: countSchema(1) },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt',
    required: true,
    schema: integer(1, 86_400, 5),
  },
}

const headersOf = (status: number) =>
  Object.fromEntries(
    Object.keys(headers)
      .filter((name) => name !== 'Retry-After' || status === 429 || status === 503)
      .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )

// Error code → additional members of its example.
const errorMembers: Partial<Record<ErrorCode, object>> = {
  validation_failed: {
    details: [{ in: 'body', path: '/name', code: 'too_small', message: 'must have at least 3 characters' }],
  },
  forbidden: { requiredPermission: 'clusters:write' },
  setup_already_complete: { setupComplete: true },
  limit_reached: { limit: 50, used: 50 },
  target_changed: { resolvedCount: 12 },
  batch_limit_exceeded: { resolvedCount: 612 },
}

const errorExample = (code: ErrorCode) => ({
  error: wireCodeOf(code),
  message: messageOf(code),
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  ...errorMembers[code],
})

const errorResponse = (codes: readonly [ErrorCode, ...ErrorCode[]]) => ({
  description: codes.map((code) => `- \`${wireCodeOf(code)}\`: ${messageOf(code)}`).join('\n'),
  headers: headersOf(statusOf(codes[0])),
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/Error' },
      examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
    },
  },
})

// Error responses that many operations share; the keys are their component names.
const sharedErrors = {
  BadPath: ['invalid_path'],
  BadParameters: ['invalid_path', 'validation_failed'],
  BadBody: ['invalid_path', 'validation_failed', 'invalid_json', 'unsupported_media_type'],
  PayloadTooLarge: ['payload_too_large'],
  Unauthenticated: ['unauthenticated', 'token_expired'],
  OtherOrigin: ['cross_origin_request', 'https_required'],
  Forbidden: ['cross_origin_request', 'https_required', 'forbidden'],
  ClusterNotFound: ['cluster_not_found'],
  JobNotFound: ['job_not_found'],
  RateLimited: ['rate_limited'],
  InternalError: ['internal_error'],
  Unavailable: ['starting', 'overloaded', 'database_unavailable', 'storage_full'],
} as const satisfies Record<string, readonly [ErrorCode, ...ErrorCode[]]>

export const errorResponses = Object.entries(sharedErrors).map(([name, codes]) => [name, errorResponse(codes)] as const)

const sharedNames = new Map(Object.entries(sharedErrors).map(([name, codes]) => [codes.join(), name] as const))

function errorResponseOf([firstCode, ...others]: readonly ErrorCode[]) {
  if (firstCode === undefined) throw new Error('An error response needs a code.')
  const name = sharedNames.get([firstCode, ...others].join())
  return name === undefined ? errorResponse([firstCode, ...others]) : { $ref: `#/components/responses/${name}` }
}

const successOf = (status: number, { description, content }: ResponseDefinition) => ({
  description,
  headers: headersOf(status),
  ...(content && { content }),
})

/**
 * Returns all responses of an endpoint by status. A declared response replaces the error response of the same status.
 */
export const responsesOf = (endpoint: EndpointDefinition) => ({
  ...Object.fromEntries(
    [...Map.groupBy(new Set(errorCodesOf(endpoint)), statusOf)].map(([status, codes]) => [
      status,
      errorResponseOf(codes),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(endpoint.responses).map(([status, response]) => [status, successOf(Number(status), response)]),
  ),
})
