import { now } from '@platform/core/clock'
import type { InFlightStats } from '@platform/worker/updates/target/port'
import { isLongRunning } from '../function-limits.ts'
import { FunctionError } from '../functions/errors.ts'

export interface InFlightInvocations {
  track: <Result>(functionName: string, invoke: () => Promise<Result>) => Promise<Result>
  /**
   * Counts failures since the second of `sinceMs` that the function has not counted itself. Also returns the start of
   * the oldest running invocation, except invocations of long-running functions.
   */
  unanswered: (sinceMs: number) => InFlightStats
}

/** Longer than the period that an update examines. */
const retentionSeconds = 600

const secondOf = (ms: number): number => Math.floor(ms / 1000)

/** Keeps the number of failures for each second of the last ten minutes. */
export function trackInvocations(): InFlightInvocations {
  const faultsBySecond = new Map<number, number>()
  /** Start times, oldest first. */
  const pendingInvocations = new Map<symbol, number>()

  const countError = () => {
    const second = secondOf(now())
    for (const oldSecond of faultsBySecond.keys())
      if (oldSecond < second - retentionSeconds) faultsBySecond.delete(oldSecond)
    faultsBySecond.set(second, (faultsBySecond.get(second) ?? 0) + 1)
  }
  return {
    track: async (functionName, invoke) => {
      const invocation = Symbol(functionName)
      if (!isLongRunning(functionName)) pendingInvocations.set(invocation, now())
      try {
        return await invoke()
      } catch (error) {
        if (!(error instanceof FunctionError && error.isCounted)) countError()
        throw error
      } finally {
        pendingInvocations.delete(invocation)
      }
    },
    unanswered: (sinceMs) => {
      const recentFaults = [...faultsBySecond].filter(([second]) => second >= secondOf(sinceMs))
      const [oldestMs] = pendingInvocations.values()
      return {
        faults: recentFaults.reduce((sum, [, count]) => sum + count, 0),
        ...(oldestMs !== undefined && { oldestMs }),
      }
    },
  }
}
