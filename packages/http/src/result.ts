import type { EndpointDefinition, ResponseDefinition } from '@platform/contract/endpoint'
import { sha256 } from '@platform/core/id'
import type * as z from 'zod'

/** The result of a handler. Header names are lower-case. */
export interface Result<Status extends number = number, Body = unknown> {
  status: Status
  body: Body
  headers: Readonly<Record<string, string>>
  /** Values of the `Set-Cookie` headers. */
  cookies?: readonly string[]
}

export function result<const Status extends number>(status: Status): Result<Status, undefined>
/** Creates a result with the body that the endpoint defines for this status. */
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

type BodyOf<Response extends ResponseDefinition> = Response extends {
  content: { 'application/json': { schema: infer Schema extends z.ZodType } }
}
  ? z.input<Schema> | (Response extends { content: { 'application/octet-stream': object } } ? Uint8Array : never)
  : Response extends { content: object }
    ? string
    : undefined

/** The results that an endpoint can return: each status with its body. */
export type ResultOf<Definition extends EndpointDefinition> = {
  [Status in keyof Definition['responses'] & number]: Result<Status, BodyOf<Definition['responses'][Status]>>
}[keyof Definition['responses'] & number]

/**
 * Creates a result with an ETag for clients that poll: they revalidate their copy, and receive only changed content.
 */
export const withEtag = <Body>(body: Body): Result<200, Body> =>
  result(200, body, {
    'cache-control': 'private, no-cache',
    etag: `"${sha256(JSON.stringify(body)).slice(0, 32)}"`,
  })

/**
 * Creates a redirect of a browser. The location may contain a secret, so the response is not cached and the browser
 * sends no `Referer` header.
 */
export const redirect = (location: string, cookies: readonly string[] = []): Result<302, undefined> =>
  result(302, undefined, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }, cookies)

/** Whether the caller asks for bytes instead of JSON. */
export const wantsBytes = ({ accept = '' }: Readonly<Record<string, string | undefined>>): boolean =>
  accept.split(',').some((type) => /^\s*application\/octet-stream\s*(?:;|$)/i.test(type))

/** Returns the headers of a file that is downloaded in parts. `next` is the address of the next part. */
export const downloadHeaders = (name: string, type: string, next: string | undefined): Record<string, string> => ({
  'content-type': type,
  'content-disposition': `attachment; filename="${name}"`,
  ...(next !== undefined && { link: `<${next}>; rel="next"` }),
})
