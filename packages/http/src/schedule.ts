import { tallyFault } from '@platform/core/update/fault-tally'
import { log, traced } from '@platform/core/log'
import { measure, measured } from '@platform/core/metrics'
import { isProbe, type ProbeAnswer } from '@platform/core/update/probe'
import { markTallied } from '@platform/core/update/tallied'
import { version } from '@platform/core/version'
import { newTraceId } from '@platform/core/trace'

/** A Lambda function that is started by a clock or a deployment. A failure is logged, and fails the invocation. */
export const scheduled =
  (task: string, work: () => Promise<void>) =>
  async (event?: unknown): Promise<ProbeAnswer | undefined> => {
    if (isProbe(event)) return { version }
    await traced({ traceId: newTraceId(), task }, () => measured(() => run(work)))
    return undefined
  }

async function run(work: () => Promise<void>): Promise<void> {
  const startedAtMs = performance.now()
  measure('Runs')
  try {
    await work()
    const durationMs = Math.round(performance.now() - startedAtMs)
    log('info', 'task done', { durationMs })
    measure('RunDuration', durationMs)
    measure('RunFailures', 0)
  } catch (error) {
    log('error', 'task failed', { cause: error })
    measure('RunFailures')
    await tallyFault()
    markTallied(error)
    throw error
  }
}
