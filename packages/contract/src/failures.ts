import {
  allowsUnknownInput,
  bodySchemaOf,
  capabilitiesOf,
  type EndpointDefinition,
  isIdempotent,
  takesForm,
} from './endpoint.ts'
import type { ErrorCode } from './errors.ts'

function requestErrors(endpoint: EndpointDefinition): ErrorCode[] {
  // Size and path are checked for every request, even if the endpoint takes no body.
  const codes: ErrorCode[] = ['invalid_path', 'payload_too_large']
  const isStrict = !allowsUnknownInput(endpoint)
  if (endpoint.request || isStrict) codes.push('validation_failed')
  if (isIdempotent(endpoint)) codes.push('idempotency_key_reused')
  if (bodySchemaOf(endpoint) || takesForm(endpoint) || (isStrict && endpoint.method !== 'get'))
    codes.push('invalid_json', 'unsupported_media_type')
  return codes
}

// Requests with a session cookie may come from a page of another origin.
const crossOriginErrors = ['cross_origin_request', 'https_required'] as const

function callerErrors({ access, sameOriginOnly }: EndpointDefinition): ErrorCode[] {
  if (access === 'public') return sameOriginOnly ? [...crossOriginErrors] : []
  if (access === 'relay') return ['unauthenticated', 'relay_revoked']
  const userErrors = ['unauthenticated', 'token_expired', ...crossOriginErrors] as const
  return access === 'user' ? [...userErrors] : [...userErrors, 'forbidden']
}

function serviceErrors(endpoint: EndpointDefinition): ErrorCode[] {
  const capabilities = capabilitiesOf(endpoint)
  const needsStore = capabilities.some((capability) => capability.startsWith('table:'))
  const storeErrors = ['starting', 'overloaded', 'database_unavailable', 'storage_full'] as const
  const writeErrors = capabilities.includes('table:write') ? (['conflict'] as const) : []
  return [...writeErrors, 'rate_limited', 'internal_error', ...(needsStore ? storeErrors : [])]
}

/** Returns all error codes that the endpoint can return. */
export const errorCodesOf = (endpoint: EndpointDefinition): ErrorCode[] => [
  ...new Set([
    ...requestErrors(endpoint),
    ...callerErrors(endpoint),
    ...(endpoint.errors ?? []),
    ...serviceErrors(endpoint),
  ]),
]
