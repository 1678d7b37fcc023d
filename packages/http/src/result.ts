import type { EndpointDefinition, ResponseDefinition } from '@platform/contract/endpoint'
import type * as z from 'zod'

/** What a handler answers. Header names are lower-case. */
export interface Result<Status extends number = number, Body = unknown> {
  status: Status
  body: Body
  headers: Readonly<Record<string, string>>
  /** One `Set-Cookie` each. */
  cookies?: readonly string[]
}

/** An answer without a body. */
export function result<const Status extends number>(status: Status): Result<Status, undefined>
/** An answer with the body that the endpoint promises for this status. */
export function result<const Status extends number, Body>(
  status: Status,
  body: Body,
  headers?: Readonly<Record<string, string>>,
  cookies?: readonly string[],
): Result<Status, Body>
export function result(
  status: number,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
  cookies: readonly string[] = [],
): Result {
  return { status, body, headers, cookies }
}

type BodyOf<Response extends ResponseDefinition> = Response extends { schema: infer Schema extends z.ZodType }
  ? z.input<Schema>
  : Response extends { contentType: string }
    ? string
    : undefined

/** Every answer that an endpoint promises: its statuses, each with its own body. */
export type ResultOf<Definition extends EndpointDefinition> = {
  [Status in keyof Definition['responses'] & number]: Result<Status, BodyOf<Definition['responses'][Status]>>
}[keyof Definition['responses'] & number]
