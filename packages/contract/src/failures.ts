import { bodySchemaOf, capabilitiesOf, type EndpointDefinition, isIdempotent, takesForm } from './endpoint.ts'
import type { ErrorCode } from './errors.ts'

function refusedRequests(endpoint: EndpointDefinition): ErrorCode[] {
  // Applies to every request: a body is rejected for its size even if the endpoint takes none.
  const codes: ErrorCode[] = ['invalid_path', 'payload_too_large']
  if (endpoint.request || isIdempotent(endpoint)) codes.push('validation_failed')
  if (isIdempotent(endpoint)) codes.push('idempotency_key_reused')
  if (bodySchemaOf(endpoint)) codes.push('invalid_json', 'unsupported_media_type')
  if (takesForm(endpoint)) codes.push('unsupported_media_type')
  return codes
}

/** Errors of cookie-authenticated requests that another origin may have caused. */
const otherOrigins = ['cross_origin_request', 'https_required'] as const

function refusedCallers({ access, sameOriginOnly }: EndpointDefinition): ErrorCode[] {
  if (access === 'public') return sameOriginOnly ? [...otherOrigins] : []
  if (access === 'relay') return ['unauthenticated']
  const others = ['unauthenticated', 'token_expired', ...otherOrigins] as const
  return access === 'user' ? [...others] : [...others, 'forbidden']
}

function outages(endpoint: EndpointDefinition): ErrorCode[] {
  const needsStore = capabilitiesOf(endpoint).some((capability) => capability.startsWith('table:'))
  return ['rate_limited', 'internal_error', ...(needsStore ? (['starting', 'database_unavailable'] as const) : [])]
}

/** Every error code of an endpoint: its own and those of its access and request. */
export const errorCodesOf = (endpoint: EndpointDefinition): ErrorCode[] => [
  ...refusedRequests(endpoint),
  ...refusedCallers(endpoint),
  ...(endpoint.errors ?? []),
  ...outages(endpoint),
]
