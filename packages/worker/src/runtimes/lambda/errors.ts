import { isAws } from '@platform/core/aws/error-name'
import { RuntimeError, type RuntimeErrorKind } from '../port.ts'

/** Lambda says these before it has run anything. */
const notRun = new Set([
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

/** Nobody was reached. */
const notConnected = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

const tooLarge = new Set(['RequestTooLargeException', 'SerializedRequestEntityTooLargeException'])

/** What it means that a request was not even answered by Lambda, or that it refused to run it. */
export function invokeFailure(cause: unknown): RuntimeError {
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause))
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (tooLarge.has(name)) return new RuntimeError('too_large', 'The request is larger than Lambda takes.', { cause })
  // What was perhaps run must not pass for what was not: whoever asks would ask again elsewhere.
  const problem: RuntimeErrorKind = notRun.has(name) || notConnected.has(code) ? 'unavailable' : 'crashed'
  return new RuntimeError(problem, `Lambda: ${name}: ${message}`.slice(0, 1000), { cause })
}

const problems: Readonly<Record<string, RuntimeErrorKind>> = {
  'Sandbox.Timedout': 'timeout',
  'Function.ResponseSizeTooLarge': 'too_large',
  'Function.ResponsePayloadTooLarge': 'too_large',
  'Runtime.InvalidEntrypoint': 'init_failed',
  'Runtime.InvalidWorkingDir': 'init_failed',
  'Runtime.ImportModuleError': 'init_failed',
  // So says the SDK of modules where one cannot begin; what ends without a word has crashed.
  'PLAT-MOD-5004': 'init_failed',
}

/** What it means that a function failed: its payload is what its runtime, or Lambda in its place, says of it. */
export function functionFailure(payload: Uint8Array): RuntimeError {
  const { errorType, errorMessage } = said(payload)
  const isLate = errorMessage.includes('Task timed out')
  const problem = problems[errorType] ?? (isLate ? 'timeout' : 'crashed')
  return new RuntimeError(problem, errorMessage === '' ? 'The function failed and says nothing.' : errorMessage)
}

function said(payload: Uint8Array): { errorType: string; errorMessage: string } {
  try {
    const { errorType, errorMessage }: Record<string, unknown> = JSON.parse(Buffer.from(payload).toString())
    return { errorType: text(errorType), errorMessage: text(errorMessage).slice(0, 1000) }
  } catch {
    return { errorType: '', errorMessage: '' }
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What it means that Lambda does not change a function: what is wrong with the wish stays wrong, all else may pass. */
export function changeFailure(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause))
  const isOurs = cause instanceof Error && '$fault' in cause && cause.$fault === 'client' && !isAws(cause, ...passing)
  return new RuntimeError(isOurs ? 'refused' : 'unavailable', `Lambda: ${name}: ${message}`.slice(0, 1000), { cause })
}

const passing = ['TooManyRequestsException', 'ThrottlingException', 'ResourceConflictException', 'RequestTimeout']
