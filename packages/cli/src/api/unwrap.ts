import { CliError, type exitCodes, messageOf } from '../exit.ts'
import { adviceFor } from './advice.ts'
import { cellOf } from '../print/table.ts'

type Call = Promise<{ data?: unknown; error?: unknown; response: Response }>
type DataOf<Result> = Result extends { data: infer Data } ? NonNullable<Data> : never

/**
 * Returns the body of a successful response. Throws `ApiRejection` for an error response of the platform, and another
 * `CliError` for other failures.
 */
export async function unwrap<Result extends { data?: unknown; error?: unknown; response: Response }>(
  call: Promise<Result>,
): Promise<DataOf<Result>> {
  const result = await successfulResult(call)
  if (hasData(result)) return result.data
  throw unexpectedResponse(result.response)
}

/** Like `unwrap`, but returns undefined for a successful response without a body. */
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
      throw new CliError(
        'unreachable',
        `The response is not valid JSON (${messageOf(error)}). Check that the address is that of a platform.`,
        error,
      )
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

/** Converts an error response to an `ApiRejection`, or to another `CliError` if it is not from the platform. */
export function toApiRejection(response: Response, error: unknown): CliError {
  const body = new Map(Object.entries(typeof error === 'object' && error !== null ? error : {}))
  const code = body.get('error')
  if (typeof code !== 'string') return unexpectedResponse(response)
  const { message, next } = adviceFor(code, response)
  const lines = [`${message ?? withoutRoutes(cellOf(body.get('message')))} (${cellOf(code)})`]
  lines.push(...detailsOf(body.get('details')))
  if (body.has('requiredPermission')) lines.push(`Required permission: ${cellOf(body.get('requiredPermission'))}`)
  if (next !== undefined) lines.push(next)
  lines.push(`Trace id: ${cellOf(body.get('traceId'))}`)
  return new ApiRejection(reasonOf(response.status, code), code, lines.join('\n'))
}

const reasonOf = (status: number, code: string): keyof typeof exitCodes => {
  if (status === 401 && code !== 'invalid_credentials') return 'notSignedIn'
  return status === 503 ? 'unreachable' : 'refused'
}

// Removes sentences that name routes, which help callers of the API but not users of commands.
const withoutRoutes = (message: string): string =>
  message
    .split(/(?<=\.) /)
    .filter((sentence) => !/\b(?:GET|POST|PUT|PATCH|DELETE) \//.test(sentence))
    .join(' ')

function unexpectedResponse({ status, headers }: Response): CliError {
  const location = headers.get('location')
  const redirectHint = location === null ? '' : ` and redirects to ${cellOf(location)}, which may be the right address`
  return new CliError(
    'unreachable',
    `The server returned ${status}, which is not a response of the platform${redirectHint}. Check the address.`,
  )
}

function detailsOf(details: unknown): string[] {
  if (!Array.isArray(details)) return []
  return details.map((detail: unknown) => {
    const { path, message }: { path?: unknown; message?: unknown } = Object(detail)
    const field = typeof path === 'string' ? path.replace(/^\//, '').replaceAll('/', '.') : ''
    return `  ${field === '' ? '' : `${cellOf(field)}: `}${cellOf(message)}`
  })
}
