import { RegistryError, type RegistryErrorKind } from './error.ts'
import type { TransportResponse } from './transport.ts'

/** Interpretation of registry responses. Errors never quote a response, because it may echo the request. */

/** Joins repeated headers. */
export function headerOf({ headers }: TransportResponse, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value.join(', ') : value
}

export const isRedirect = ({ status }: TransportResponse): boolean => [301, 302, 303, 307, 308].includes(status)

/** Error codes of the OCI distribution specification and of Docker's registry. */
const errorCode =
  /"code"\s*:\s*"((?:BLOB_(?:UNKNOWN|UPLOAD_(?:INVALID|UNKNOWN))|DENIED|DIGEST_INVALID|MANIFEST_(?:BLOB_UNKNOWN|INVALID|UNKNOWN|UNVERIFIED)|NAME_(?:INVALID|UNKNOWN)|SIZE_INVALID|TAG_INVALID|TOOMANYREQUESTS|UNAUTHORIZED|UNSUPPORTED))"/

const problemOf = (status: number): RegistryErrorKind => {
  if (status < 400) return 'invalid'
  if (status === 401 || status === 403) return 'unauthorized'
  if (status === 404) return 'not_found'
  return status === 408 || status === 429 || status >= 500 ? 'unreachable' : 'refused'
}

const advice: Readonly<Partial<Record<RegistryErrorKind, string>>> = {
  unauthorized: 'Check the credentials for this registry and their permissions.',
  not_found: 'Check the name of the repository, and the tag or digest.',
  unreachable: 'Try again later.',
  invalid: 'Check that this is an OCI registry.',
}

/** Error responses are short; any further content is ignored. */
const maxErrorBytes = 64 * 1024

export function failureOf(registry: string, description: string, response: TransportResponse): RegistryError {
  if (isRedirect(response)) return new RegistryError('refused', redirectMessage(registry, description))
  const code = errorCode.exec(response.body.toString('utf8', 0, maxErrorBytes))?.[1]
  const problem = problemOf(response.status)
  const reason = `Registry ${registry} responded with ${response.status}${code === undefined ? '' : ` ${code}`} for ${description}.`
  const message = `${reason} ${advice[problem] ?? 'The registry does not support or allow this operation.'}`
  const retryAfterSeconds = retryAfterOf(response)
  return new RegistryError(problem, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
}

const redirectMessage = (registry: string, description: string): string =>
  `Registry ${registry} redirects ${description}, which is not followed. Name the registry by the address that it redirects to.`

/** Returns the `Retry-After` in seconds, at most one day. A date is relative to the `Date` header of the registry. */
function retryAfterOf(response: TransportResponse): number | undefined {
  const text = headerOf(response, 'retry-after')?.trim() ?? ''
  const dateMs = text.endsWith('GMT') ? Date.parse(text) : Number.NaN
  const seconds = /^\d+$/.test(text) ? Number(text) : (dateMs - Date.parse(headerOf(response, 'date') ?? '')) / 1000
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(Math.ceil(seconds), 0), 24 * 60 * 60)
}
