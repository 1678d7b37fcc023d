import { log, traced } from '@platform/core/log'
import { newTraceId } from './trace.ts'

/** A Lambda function that is started by a clock or a deployment. A failure is logged, and fails the invocation. */
export const scheduled = (task: string, work: () => Promise<void>) => (): Promise<void> =>
  traced({ traceId: newTraceId(), task }, async () => {
    const startedAtMs = performance.now()
    try {
      await work()
      log('info', 'task done', { durationMs: Math.round(performance.now() - startedAtMs) })
    } catch (error) {
      log('error', 'task failed', { cause: error })
      throw error
    }
  })
