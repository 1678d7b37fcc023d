import * as z from 'zod'

const count = (description: string, example: number) => z.int32().min(0).optional().meta({ description, example })

/** Headers of every answer (D33, D34). One object each, so that the document holds each of them once. */
const common = {
  'X-Trace-Id': z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .max(32)
    .meta({ description: 'Correlates the request to server traces', header: { id: 'X-Trace-Id' } }),
  'RateLimit-Limit': count('Requests that the caller may make in a window', 600).meta({
    header: { id: 'RateLimit-Limit' },
  }),
  'RateLimit-Remaining': count('Requests that are left in the window', 599).meta({
    header: { id: 'RateLimit-Remaining' },
  }),
  'RateLimit-Reset': count('Seconds until the window is full again', 1).meta({ header: { id: 'RateLimit-Reset' } }),
}

const RetryAfter = z
  .int32()
  .min(1)
  .max(86_400)
  .meta({ description: 'Seconds to wait before the next try', example: 5, header: { id: 'Retry-After' } })

const always = z.object(common)
const untilLater = z.object({ ...common, 'Retry-After': RetryAfter })

/** The headers that an answer of this status carries. */
export const headersOf = (status: number): z.ZodObject => (status === 429 || status === 503 ? untilLater : always)
