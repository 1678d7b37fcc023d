import { CliError, type exitCodes, messageOf } from '../exit.ts'
import { cellOf } from '../print/table.ts'

type Call = Promise<{ data?: unknown; error?: unknown; response: Response }>
type DataOf<Result> = Result extends { data: infer Data } ? NonNullable<Data> : never

/** The body of a successful response. Throws `ApiRejection` with the platform's message. */
export async function unwrap<Result extends { data?: unknown; error?: unknown; response: Response }>(
  call: Promise<Result>,
): Promise<DataOf<Result>> {
  const result = await successfulResult(call)
  if (hasData(result)) return result.data
  throw unexpectedResponse(result.response)
}

/** Like `unwrap`, but undefined for an empty response, which a repeated DELETE returns. */
export async function unwrapOptional<Result extends { data?: unknown; error?: unknown; response: Response }>(
  call: Promise<Result>,
): Promise<DataOf<Result> | undefined> {
  const result = await successfulResult(call)
  return hasData(result) ? result.data : undefined
}

/** Like `unwrap`, for responses without a body. */
export async function expectNoBody(call: Call): Promise<void> {
  await successfulResult(call)
}

const hasData = <Result extends object>(result: Result): result is Result & { data: DataOf<Result> } =>
  'data' in result && result.data !== undefined

async function successfulResult<Result extends { error?: unknown; response: Response }>(
  call: Promise<Result>,
): Promise<Result> {
  const result = await call.catch((error: unknown) => {
    if (error instanceof SyntaxError)
      throw new CliError('unreachable', `The response is not valid JSON (${messageOf(error)}).`, error)
    throw error
  })
  if (!result.response.ok) throw toApiRejection(result.response, result.error)
  return result
}

/** An error response from the platform, with advice in the message. `code` is the error code of the body. */
export class ApiRejection extends CliError {
  readonly code: string

  constructor(reason: keyof typeof exitCodes, code: string, message: string) {
    super(reason, message)
    this.code = code
  }
}

export const isApiRejection = (error: unknown, code: string): boolean =>
  error instanceof ApiRejection && error.code === code

function toApiRejection(response: Response, error: unknown): CliError {
  const body = new Map(Object.entries(typeof error === 'object' && error !== null ? error : {}))
  const code = body.get('error')
  if (typeof code !== 'string') return unexpectedResponse(response)
  const lines = [`${cellOf(body.get('message'))} (${cellOf(code)})`, ...detailsOf(body.get('details'))]
  if (body.has('requiredPermission')) lines.push(`Required permission: ${cellOf(body.get('requiredPermission'))}`)
  lines.push(...adviceOf(code), `Trace id: ${cellOf(body.get('traceId'))}`)
  return new ApiRejection(reasonOf(response.status, code), code, lines.join('\n'))
}

const reasonOf = (status: number, code: string): keyof typeof exitCodes => {
  if (status === 401 && code !== 'invalid_credentials') return 'notSignedIn'
  return status === 503 ? 'unreachable' : 'refused'
}

const advice: Record<string, string> = {
  unauthenticated: 'Sign in with: plat login. If PLAT_TOKEN is set, its token is invalid.',
  token_expired: 'The token in PLAT_TOKEN has expired. Set a new one, or unset it and sign in with: plat login.',
  internal_error: 'Try again. The same command sends a new request.',
}
const adviceOf = (code: string): string[] => {
  const line = Object.hasOwn(advice, code) ? advice[code] : undefined
  return line === undefined ? [] : [line]
}

function detailsOf(details: unknown): string[] {
  if (!Array.isArray(details)) return []
  return details.map((detail: unknown) => {
    const { in: part, path, message }: { in?: unknown; path?: unknown; message?: unknown } = Object(detail)
    return `  ${cellOf(part)} ${cellOf(path)}: ${cellOf(message)}`
  })
}

function unexpectedResponse({ status, headers }: Response): CliError {
  const location = headers.get('location')
  const redirectHint = location === null ? '' : ` and redirects to ${cellOf(location)}, which may be the right address`
  return new CliError(
    'unreachable',
    `The server returned ${status}, which is not a response of the platform${redirectHint}.`,
  )
}
