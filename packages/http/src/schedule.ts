import { countVersionError } from '@platform/core/updates/error-count'
import { log, withTrace } from '@platform/core/log'
import { recordMetric, withMetrics } from '@platform/core/lib/metrics'
import { isProbe, type ProbeAnswer } from '@platform/core/updates/version-probe'
import { markCounted } from '@platform/core/updates/counted-error'
import { version } from '@platform/core/lib/version'
import { newTraceId } from '@platform/core/lib/trace'

/** A Lambda function that is started by a clock or a deployment. A failure is logged, and fails the invocation. */
export const scheduled =
  (task: string, work: () => Promise<void>) =>
  async (event?: unknown): Promise<ProbeAnswer | undefined> => {
    if (isProbe(event)) return { version }
    await withTrace({ traceId: newTraceId(), task }, () => withMetrics(() => run(work)))
    return undefined
  }

async function run(work: () => Promise<void>): Promise<void> {
  const startedAtMs = performance.now()
  recordMetric('Runs')
  try {
    await work()
    const durationMs = Math.round(performance.now() - startedAtMs)
    log('info', 'task done', { durationMs })
    recordMetric('RunDuration', durationMs)
    recordMetric('RunFailures', 0)
  } catch (error) {
    log('error', 'task failed', { cause: error })
    recordMetric('RunFailures')
    await countVersionError()
    markCounted(error)
    throw error
  }
}
