/**
 * What a module's page and the portal tell each other. The page runs in a sandbox of its own origin: the browser sends no
 * cookies with what it asks for, so that it asks the portal. docs/modules.md is the reference for authors.
 */

/** From the page: a call of the module's own API. */
export interface CallMessage {
  platform: 'request'
  /** Comes back with the answer. */
  id: string | number
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  body: string | undefined
}

/** From the page: `hello` asks for the surroundings, `open` for another page of the module. */
export type PageMessage = CallMessage | { platform: 'hello' } | { platform: 'open'; path: string }

/** Why a call was not made, or brought nothing. */
export type CallError = 'not_allowed' | 'too_large' | 'too_many' | 'unreachable'

/** To the page: the answer to a call. With `error` the status is 0. */
export interface ResponseMessage {
  platform: 'response'
  id: string | number
  status: number
  headers: Readonly<Record<string, string>>
  body: string
  error?: CallError
}

/** How the portal looks and speaks. */
export interface FrameContext {
  theme: 'light' | 'dark'
  /** A BCP 47 tag. */
  locale: string
  /** An IANA identifier. */
  timeZone: string
}

/** To the page. */
export type PortalMessage = ResponseMessage | ({ platform: 'surroundings' } & FrameContext)

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const isId = (id: unknown): id is string | number =>
  typeof id === 'number' || (typeof id === 'string' && id.length <= 100)

const isTexts = (value: unknown): value is Record<string, string> =>
  isObject(value) && Object.values(value).every((text) => typeof text === 'string')

/** What a message of a page says; undefined for anything that is none. */
export function readMessage(data: unknown): PageMessage | undefined {
  if (!isObject(data)) return undefined
  const { platform, id, method = 'GET', path, headers = {}, body } = data
  if (platform === 'hello') return { platform }
  if (typeof path !== 'string') return undefined
  if (platform === 'open') return { platform, path }
  const isCall = platform === 'request' && isId(id) && typeof method === 'string' && isTexts(headers)
  if (!isCall || (body !== undefined && typeof body !== 'string')) return undefined
  return { platform, id, method, path, headers, body }
}
