// Messages between a module's page and the portal. The page runs in a sandbox with an opaque origin and without
// cookies, so it sends its API requests through the portal. docs/modules.md is the reference.

/** Message from the page: an API request. */
export interface CallMessage {
  platform: 'request'
  /** Chosen by the page and returned with the response. */
  id: string | number
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  body: string | undefined
}

/** Message from the page. `hello` requests the context; `open` shows another page. */
export type PageMessage = CallMessage | { platform: 'hello' } | { platform: 'open'; path: string }

/** Why a request failed. */
export type CallError = 'not_allowed' | 'too_large' | 'too_many' | 'unreachable'

/** Message to the page: the response to a request. If `error` is set, `status` is 0. */
export interface ResponseMessage {
  platform: 'response'
  id: string | number
  status: number
  headers: Readonly<Record<string, string>>
  body: string
  error?: CallError
}

export interface FrameContext {
  theme: 'light' | 'dark'
  /** BCP 47 language tag. */
  locale: string
  /** IANA time zone name. */
  timeZone: string
}

export type PortalMessage = ResponseMessage | ({ platform: 'surroundings' } & FrameContext)

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const isId = (id: unknown): id is string | number =>
  typeof id === 'number' || (typeof id === 'string' && id.length <= 100)

const isStringRecord = (value: unknown): value is Record<string, string> =>
  isObject(value) && Object.values(value).every((text) => typeof text === 'string')

/** Validates a message. Returns undefined if it is invalid. */
export function parseMessage(data: unknown): PageMessage | undefined {
  if (!isObject(data)) return undefined
  const { platform, id, method = 'GET', path, headers = {}, body } = data
  if (platform === 'hello') return { platform }
  if (typeof path !== 'string') return undefined
  if (platform === 'open') return { platform, path }
  const isCall = platform === 'request' && isId(id) && typeof method === 'string' && isStringRecord(headers)
  if (!isCall || (body !== undefined && typeof body !== 'string')) return undefined
  return { platform, id, method, path, headers, body }
}
