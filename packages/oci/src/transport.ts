/** How requests leave. The platform's own guarded way out fits, so that no registry leads it to its neighbours. */

export interface TransportRequest {
  method: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** For the whole exchange, to the last byte of the answer. */
  timeoutMs: number
  /** The most that is read of the answer's body. */
  maxBytes: number
}

/** An answer of whatever status; redirects are not followed. Header names are lower-case. */
export interface TransportAnswer {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
  /** Its body holds more than was read. */
  isCutShort: boolean
}

/** Sends one request; rejects where there is no answer within its limits. */
export type Transport = (url: string, request: TransportRequest) => Promise<TransportAnswer>
