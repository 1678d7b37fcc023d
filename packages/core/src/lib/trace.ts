import { randomUUID } from 'node:crypto'

const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** The trace that a W3C `traceparent` header names (D33); a fresh one where it names none. */
export const traceIdOf = (header?: string): string => traceparent.exec(header ?? '')?.[1] ?? newTraceId()

/** A fresh trace id: 32 hex digits. Node draws the randomness of many UUIDs at once, which makes one six times as cheap. */
export const newTraceId = (): string => randomUUID().replaceAll('-', '')
