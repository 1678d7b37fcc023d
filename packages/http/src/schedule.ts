import { countVersionError } from '@platform/core/updates/error-count'
import { log, withTrace } from '@platform/core/log'
import { recordMetric, withMetrics } from '@platform/core/lib/metrics'
import { isProbe, type ProbeResponse } from '@platform/core/updates/version-probe'
import { markCounted } from '@platform/core/updates/counted-error'
import { version } from '@platform/core/lib/version'
import { newTraceId } from '@platform/core/lib/trace'

/** Creates a Lambda function that a schedule or a deployment starts. An error is logged and fails the invocation. */
export const onSchedule =
  (task: string, work: () => Promise<void>, logLevel: 'info' | 'debug' = 'info') =>
  async (event?: unknown): Promise<ProbeResponse | undefined> => {
    if (isProbe(event)) return { version }
    await withTrace({ traceId: newTraceId(), task }, () => withMetrics(() => run(work, logLevel)))
    return undefined
  }

async function run(work: () => Promise<void>, logLevel: 'info' | 'debug'): Promise<void> {
  const startedAtMs = performance.now()
  recordMetric('ScheduledRuns')
  try {
    await work()
    const durationMs = Math.round(performance.now() - startedAtMs)
    log(logLevel, 'scheduled run completed', { durationMs })
    recordMetric('ScheduledRunDuration', durationMs)
    recordMetric('ScheduledRunFailures', 0)
  } catch (error) {
    log('error', 'scheduled run failed', { cause: error })
    recordMetric('ScheduledRunFailures')
    await countVersionError()
    markCounted(error)
    throw error
  }
}
