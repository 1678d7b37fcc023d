import { isAws } from '@platform/core/aws/sdk'
import { RuntimeError, type RuntimeErrorKind } from '../port.ts'

/** Lambda returns these errors before it runs any code. */
const notRunErrors = new Set([
  'TooManyRequestsException',
  'ResourceNotFoundException',
  'ResourceConflictException',
  'ResourceNotReadyException',
  'CodeArtifactUserPendingException',
  'CodeArtifactUserFailedException',
  'CodeArtifactUserDeletedException',
  'KMSAccessDeniedException',
  'KMSDisabledException',
  'KMSInvalidStateException',
  'KMSNotFoundException',
  'AccessDeniedException',
  'EC2ThrottledException',
  'ENINotReadyException',
])

/** Codes of errors before a connection was established. */
const notConnectedCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

const tooLargeErrors = new Set(['RequestTooLargeException', 'SerializedRequestEntityTooLargeException'])

/** Converts the error of a request that Lambda rejected or did not respond to. */
export function invokeFailure(cause: unknown): RuntimeError {
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause))
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (tooLargeErrors.has(name))
    return new RuntimeError('too_large', 'The request exceeds the payload limit of Lambda.', { cause })
  // A request that may have run must not be reported as not run: the caller would retry it elsewhere.
  const problem: RuntimeErrorKind = notRunErrors.has(name) || notConnectedCodes.has(code) ? 'unavailable' : 'crashed'
  return new RuntimeError(problem, `Lambda: ${name}: ${message}`.slice(0, 1000), { cause })
}

const problemByErrorType: Readonly<Record<string, RuntimeErrorKind>> = {
  'Sandbox.Timedout': 'timeout',
  'Function.ResponseSizeTooLarge': 'too_large',
  'Function.ResponsePayloadTooLarge': 'too_large',
  'Runtime.InvalidEntrypoint': 'init_failed',
  'Runtime.InvalidWorkingDir': 'init_failed',
  'Runtime.ImportModuleError': 'init_failed',
  // The module SDK reports this if a module cannot initialise; an exit without an error is a crash.
  'PLAT-MOD-5004': 'init_failed',
}

/** Converts the payload of a failed function, which the function's runtime or Lambda itself has written. */
export function functionFailure(payload: Uint8Array): RuntimeError {
  const { errorType, errorMessage } = errorIn(payload)
  const isLate = errorMessage.includes('Task timed out')
  const problem = problemByErrorType[errorType] ?? (isLate ? 'timeout' : 'crashed')
  return new RuntimeError(problem, errorMessage === '' ? 'The function failed without a message.' : errorMessage)
}

function errorIn(payload: Uint8Array): { errorType: string; errorMessage: string } {
  try {
    const { errorType, errorMessage }: Record<string, unknown> = JSON.parse(Buffer.from(payload).toString())
    return { errorType: textOf(errorType), errorMessage: textOf(errorMessage).slice(0, 1000) }
  } catch {
    return { errorType: '', errorMessage: '' }
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Converts the error of a change. Client errors are final, except throttling, conflicts and timeouts. */
export function changeFailure(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause))
  const isClientError =
    cause instanceof Error && '$fault' in cause && cause.$fault === 'client' && !isAws(cause, ...transientErrors)
  return new RuntimeError(isClientError ? 'refused' : 'unavailable', `Lambda: ${name}: ${message}`.slice(0, 1000), {
    cause,
  })
}

const transientErrors = [
  'TooManyRequestsException',
  'ThrottlingException',
  'ResourceConflictException',
  'RequestTimeout',
]
