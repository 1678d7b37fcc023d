import { tallyFault } from '@platform/core/updates/error-count'
import { log, traced } from '@platform/core/log'
import { measure, measured } from '@platform/core/lib/metrics'
import type * as z from 'zod'
import { probed } from './version-probe.ts'
import { newTraceId } from '@platform/core/lib/trace'

/** The parts of an SQS event that a consumer reads. */
export interface QueueEvent {
  Records: readonly { messageId: string; body: string }[]
}

/** The messages that failed: the queue hands out those alone once more, and buries them in the end. */
export interface QueueResult {
  batchItemFailures: { itemIdentifier: string }[]
}

/** A Lambda function that works through a queue. Each message counts by itself: a bad one fails alone. */
export const consume = <Schema extends z.ZodType>(schema: Schema, work: (message: z.output<Schema>) => Promise<void>) =>
  probed(({ Records }: QueueEvent): Promise<QueueResult> =>
    measured(async () => {
      const startedAtMs = performance.now()
      const tried = Records.map(async ({ messageId, body }) => {
        const isDone = await attempt(messageId, async () => work(schema.parse(JSON.parse(body))))
        measure(isDone ? 'MessagesDone' : 'MessagesFailed')
        return isDone ? [] : [{ itemIdentifier: messageId }]
      })
      const failures = await Promise.all(tried)
      measure('BatchDuration', Math.round(performance.now() - startedAtMs))
      return { batchItemFailures: failures.flat() }
    }),
  )

/** Whether a piece of work succeeded; if not, the log tells why. */
const attempt = (messageId: string, work: () => Promise<void>): Promise<boolean> =>
  traced({ traceId: newTraceId(), messageId }, async () => {
    try {
      await work()
      log('debug', 'message done')
      return true
    } catch (error) {
      log('error', 'message failed', { cause: error })
      await tallyFault()
      return false
    }
  })
