import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import { ErrorBody } from '../common.ts'
import type { EndpointDefinition, ResponseDefinition } from '../endpoint.ts'
import { type ErrorCode, messageOf, statusOf, wireCodeOf } from '../errors.ts'
import { errorCodesOf } from '../failures.ts'
import { headersOf } from './headers.ts'

const describe = (codes: readonly ErrorCode[]): string =>
  codes.map((code) => `- \`${wireCodeOf(code)}\`: ${messageOf(code)}`).join('\n')

const failure = (status: number, codes: readonly ErrorCode[]): ZodOpenApiResponseObject => ({
  description: describe(codes),
  headers: headersOf(status),
  content: { 'application/json': { schema: ErrorBody } },
})

/** Failures that many operations share stand in the document once, under these names. */
const named = {
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
  Unavailable: ['starting', 'database_unavailable'],
} as const satisfies Record<string, readonly ErrorCode[]>

const shared = new Map(
  Object.entries(named).map(([id, codes]) => [codes.join(), { ...failure(statusOf(codes[0]), codes), id }] as const),
)

const failuresOfStatus = ([status, codes]: [number, ErrorCode[]]) =>
  [status, shared.get(codes.join()) ?? failure(status, codes)] as const

function declared(status: number, promised: ResponseDefinition): ZodOpenApiResponseObject {
  const { description, schema, contentType, otherContentTypes = [] } = promised
  const response = { description, headers: headersOf(status) }
  if (schema) return { ...response, content: { [contentType ?? 'application/json']: { schema } } }
  if (contentType === undefined) return response
  return { ...response, content: Object.fromEntries([contentType, ...otherContentTypes].map((type) => [type, {}])) }
}

/** All answers of an endpoint by status. What the endpoint declares itself wins over the shared error body. */
export const responsesOf = (endpoint: EndpointDefinition): ZodOpenApiResponsesObject =>
  Object.fromEntries([
    ...[...Map.groupBy(new Set(errorCodesOf(endpoint)), statusOf)].map(failuresOfStatus),
    ...Object.entries(endpoint.responses).map(
      ([status, response]) => [Number(status), declared(Number(status), response)] as const,
    ),
  ])
