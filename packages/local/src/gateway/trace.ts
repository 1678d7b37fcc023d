import { randomBytes } from 'node:crypto'

const traceparent = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/

/** The trace of a request (D33): the one that a valid `traceparent` names, else a new one. */
export const traceIdOf = (header: string | undefined): string =>
  traceparent.exec(header ?? '')?.[1] ?? randomBytes(16).toString('hex')

/** The same trace in the header that API Gateway adds. */
export const amazonTrace = (traceId: string): string => `Root=1-${traceId.slice(0, 8)}-${traceId.slice(8)}`
