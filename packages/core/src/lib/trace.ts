import { randomUUID } from 'node:crypto'

const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** Returns the id of a valid W3C `traceparent` header, or a new id. */
export const traceIdOf = (header?: string): string => traceparent.exec(header ?? '')?.[1] ?? newTraceId()

/** Returns 32 hexadecimal digits. `randomUUID` buffers randomness, so it is faster than `randomBytes`. */
export const newTraceId = (): string => randomUUID().replaceAll('-', '')
