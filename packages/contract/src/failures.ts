import { bodySchemaOf, capabilitiesOf, type EndpointDefinition, isIdempotent, takesForm } from './endpoint.ts'
import type { ErrorCode } from './errors.ts'

function refusedRequests(endpoint: EndpointDefinition): ErrorCode[] {
  // A body that is too large is refused even where none is asked for.
  const codes: ErrorCode[] = ['invalid_path', 'payload_too_large']
  if (endpoint.request || isIdempotent(endpoint)) codes.push('validation_failed')
  if (isIdempotent(endpoint)) codes.push('idempotency_key_reused')
  if (bodySchemaOf(endpoint)) codes.push('invalid_json', 'unsupported_media_type')
  if (takesForm(endpoint)) codes.push('unsupported_media_type')
  return codes
}

/** What requests with the cookie of a browser are refused with, where another page may have caused them. */
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

/** Every code that an endpoint may answer with: its own `fails` and those that its access and its request bring. */
export const errorCodesOf = (endpoint: EndpointDefinition): ErrorCode[] => [
  ...refusedRequests(endpoint),
  ...refusedCallers(endpoint),
  ...(endpoint.errors ?? []),
  ...outages(endpoint),
]
