import { countVersionError } from '@platform/core/updates/error-count'
import { log, withTrace } from '@platform/core/log'
import { recordMetric, withMetrics } from '@platform/core/lib/metrics'
import type * as z from 'zod'
import { withVersionProbe } from './version-probe.ts'
import { newTraceId } from '@platform/core/lib/trace'

/** The fields of an SQS event that a consumer reads. */
export interface QueueEvent {
  Records: readonly { messageId: string; body: string }[]
}

/** The failed messages. SQS delivers only these again. */
export interface QueueResult {
  batchItemFailures: { itemIdentifier: string }[]
}

/** Creates a Lambda function that consumes a queue. A failed message does not affect the others. */
export const consume = <Schema extends z.ZodType>(schema: Schema, work: (message: z.output<Schema>) => Promise<void>) =>
  withVersionProbe(({ Records }: QueueEvent): Promise<QueueResult> =>
    withMetrics(async () => {
      const startedAtMs = performance.now()
      const results = Records.map(async ({ messageId, body }) => {
        const isProcessed = await attempt(messageId, async () => work(schema.parse(JSON.parse(body))))
        recordMetric(isProcessed ? 'MessagesProcessed' : 'MessagesFailed')
        return isProcessed ? [] : [{ itemIdentifier: messageId }]
      })
      const failures = await Promise.all(results)
      recordMetric('BatchDuration', Math.round(performance.now() - startedAtMs))
      return { batchItemFailures: failures.flat() }
    }),
  )

const attempt = (messageId: string, work: () => Promise<void>): Promise<boolean> =>
  withTrace({ traceId: newTraceId(), messageId }, async () => {
    try {
      await work()
      log('debug', 'message processed')
      return true
    } catch (error) {
      log('error', 'message failed', { cause: error })
      await countVersionError()
      return false
    }
  })
