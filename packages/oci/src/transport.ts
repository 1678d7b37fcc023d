/**
 * Transport of HTTP requests. The platform uses its outbound guard, so that a registry cannot make it send requests to
 * internal hosts.
 */

export interface TransportRequest {
  method: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Timeout of the whole exchange, up to the last byte of the response. */
  timeoutMs: number
  /** Maximum number of bytes to read from the response body. */
  maxBytes: number
}

/** A response with any status; redirects are not followed. Header names are lower-case. */
export interface TransportResponse {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
  /** Whether the response body is longer than `body`. */
  isCutShort: boolean
}

/** Sends one request. Rejects if there is no complete response within the timeout. */
export type Transport = (url: string, request: TransportRequest) => Promise<TransportResponse>
