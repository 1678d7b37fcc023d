import type { ProviderProblem } from '@platform/contract/identity'
import type { SignInError } from '@platform/contract/sign-in'
import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'
import { OutboundError, type OutboundErrorKind } from '../../outbound/outbound.ts'
import { SignInFailure } from './sign-in-failure.ts'

/** The message is for administrators and contains no token, secret or body. */
export class InvalidResponse extends Error {
  override readonly name: string = 'InvalidResponse'
}

export async function withProviderErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const code = signInErrorOf(cause)
    throw new SignInFailure(code, { cause, detail: describeFailure(cause), problem: problemOf(code, cause) })
  }
}

function signInErrorOf(error: unknown): SignInError {
  if (findOutboundError(error) !== undefined) return 'provider_unreachable'
  if (error instanceof AuthorizationResponseError) {
    return error.error === 'access_denied' ? 'access_denied' : 'provider_error'
  }
  const isErrorResponse = error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError
  return isErrorResponse ? 'provider_error' : 'answer_invalid'
}

function problemOf(code: SignInError, error: unknown): ProviderProblem | undefined {
  if (code === 'provider_unreachable') return 'unreachable'
  if (error instanceof ResponseBodyError && clientErrors.has(error.error)) return 'answer_invalid'
  return code === 'answer_invalid' && !isCausedByBrowser(dataOf(errorsIn(error).at(-1))) ? code : undefined
}

/** Describes a failure that no browser can have caused. */
export function failureOf(error: unknown, signal: AbortSignal): { problem: ProviderProblem; detail: string } {
  const cause = signal.aborted ? new OutboundError('timed_out', { cause: error }) : error
  const isUnreachable = findOutboundError(cause) !== undefined
  return { problem: isUnreachable ? 'unreachable' : 'answer_invalid', detail: describeFailure(cause) }
}

/** A browser can change the parameters of the callback, and change or remove the nonce and scope of the request. */
function isCausedByBrowser({ parameters, claim, claims, body }: ErrorData): boolean {
  const lacksNonce = claim === undefined && isObject(claims) && claims['nonce'] === undefined
  // A provider returns no ID token without the scope openid.
  const lacksIdToken = isObject(body) && body['access_token'] !== undefined && (body['id_token'] ?? '') === ''
  return parameters !== undefined || claim === 'nonce' || lacksNonce || lacksIdToken
}

/** Searches the cause chain, because the library wraps unknown errors. */
const findOutboundError = (error: unknown): OutboundError | undefined =>
  errorsIn(error).find((each) => each instanceof OutboundError)

const errorsIn = (error: unknown): Error[] => (error instanceof Error ? [error, ...errorsIn(error.cause)] : [])

const outboundMessages: Record<OutboundErrorKind, string> = {
  url_not_allowed: 'The platform may not call an address of the issuer: https is required.',
  address_not_allowed: 'The platform may not call an address of the issuer.',
  name_not_resolved: 'A host name of the issuer does not resolve.',
  certificate_not_trusted: 'The certificate of the issuer is not trusted.',
  connection_failed: 'The connection to the issuer failed.',
  timed_out: 'The issuer did not respond in time.',
}

/** Errors of the token endpoint that do not depend on the parameters of the callback. */
const clientErrors: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client'])

const errorAdvice: ReadonlyMap<string, string> = new Map([
  ['invalid_client', 'It rejects the client or its secret, which may have expired. Check clientId and clientSecret.'],
  [
    'unauthorized_client',
    'Check clientId, and allow the client to use authorization codes and refresh tokens at the provider.',
  ],
  [
    'invalid_grant',
    'The code or refresh token has expired, was used before, or was issued for another client or redirect URI. Sign in again.',
  ],
  [
    'invalid_request',
    'Register the client at the provider as a web application with a secret and the redirect URI of the platform.',
  ],
])

function describeErrorResponse(error: string): string {
  const name = /^[a-z_]{1,50}$/.test(error) ? error : '(invalid)'
  const advice = errorAdvice.get(name)
  return `The provider responded with the error ${name}.${advice === undefined ? '' : ` ${advice}`}`
}

const invalidResponse = 'The response is not from a valid OpenID provider.'

/** Names the failed check with its values, without tokens, secrets and bodies. */
export function describeFailure(error: unknown): string {
  const outboundError = findOutboundError(error)
  if (outboundError !== undefined) return outboundMessages[outboundError.problem]
  const errors = errorsIn(error)
  const invalidResponseError = errors.find((each) => each instanceof InvalidResponse)
  if (invalidResponseError !== undefined) return invalidResponseError.message
  const lastError = errors.at(-1)
  if (lastError instanceof ResponseBodyError || lastError instanceof AuthorizationResponseError)
    return describeErrorResponse(lastError.error)
  return describeData(dataOf(lastError), textOf(lastError))
}

/** Texts of the library are fixed. Texts of other errors, such as syntax errors, may contain parts of a token. */
function textOf(error: Error | undefined): string {
  const code = error !== undefined && 'code' in error ? error.code : undefined
  const isOfLibrary = typeof code === 'string' && code.startsWith('OAUTH_')
  return isOfLibrary ? `The response is invalid: ${error?.message}.` : invalidResponse
}

/** The values that the library adds to an error. They may include tokens. */
interface ErrorData {
  parameters?: unknown
  claim?: unknown
  claims?: unknown
  now?: unknown
  expected?: unknown
  header?: unknown
  alg?: unknown
  status?: unknown
  body?: unknown
}

const dataOf = (error: Error | undefined): ErrorData => (isObject(error?.cause) ? error.cause : {})

function describeData(data: ErrorData, text: string): string {
  const { parameters, claim, claims, expected, header, alg, status } = data
  if (parameters instanceof URLSearchParams)
    return `The response parameter iss is ${asciiText(parameters.get('iss') ?? undefined)}; expected ${asciiText(expected)}.`
  if (typeof claim === 'string' && isObject(claims)) return describeClaim(claim, claims[claim], data)
  if (isObject(header) && expected === undefined)
    return `${text} The header of the ID token names the algorithm ${asciiText(header['alg'])} and the key ${asciiText(header['kid'])}.`
  if (isObject(header)) return describeAlgorithm(header['alg'], `the metadata list ${asciiText(expected)}`)
  if (alg !== undefined) return describeAlgorithm(alg, 'the platform accepts public-key algorithms')
  return typeof status === 'number' ? `${text} The status is ${status}.` : text
}

/** `now` is the time of the platform in seconds. */
export function describeClaim(name: string, value: unknown, { now, expected }: ErrorData): string {
  // The values are omitted, because a nonce binds a sign-in to its browser.
  if (name === 'nonce') return 'The claim nonce of the ID token is not the nonce of the request.'
  const start = `The claim ${name} of the ID token is ${asciiText(value)}`
  if (typeof value === 'number' && typeof now === 'number')
    return `${start}, ${Math.abs(value - now)} seconds ${value > now ? 'after' : 'before'} the time of the platform.`
  return expected === undefined ? `${start}, which is not accepted.` : `${start}; expected ${asciiText(expected)}.`
}

const describeAlgorithm = (algorithm: unknown, reason: string): string =>
  `The ID token is signed with ${asciiText(algorithm)}, but ${reason}. Configure the algorithm at the provider.`

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** Returns the JSON of the value as one short line of ASCII. */
const asciiText = (value: unknown): string =>
  (JSON.stringify(value) ?? 'absent')
    .slice(0, 150)
    .replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .slice(0, 150)
