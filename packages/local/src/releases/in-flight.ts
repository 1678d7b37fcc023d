import { now } from '@platform/core/clock'
import type { InFlightStats } from '@platform/worker/updates/target/port'
import { mayTakeMinutes } from '../function-limits.ts'
import { FunctionError } from '../functions/errors.ts'

/** What is known of the invocations of one version of the functions, whatever they say of themselves. */
export interface InFlightInvocations {
  /** Follows an invocation to its end, and answers as that does. */
  follow: <Result>(functionName: string, invoke: () => Promise<Result>) => Promise<Result>
  /** Those that ended without an answer since then, the whole of that second included, and the oldest that may yet. */
  unanswered: (sinceMs: number) => InFlightStats
}

/** As long as updates look back, and more. */
const keptSeconds = 600

const secondOf = (ms: number): number => Math.floor(ms / 1000)

/** Counts by the second, and keeps ten minutes. */
export function trackInvocations(): InFlightInvocations {
  const faults = new Map<number, number>()
  /** When they began, the oldest first. */
  const underWay = new Map<symbol, number>()

  const countFault = () => {
    const second = secondOf(now())
    for (const kept of faults.keys()) if (kept < second - keptSeconds) faults.delete(kept)
    faults.set(second, (faults.get(second) ?? 0) + 1)
  }
  return {
    follow: async (functionName, invoke) => {
      const invocation = Symbol(functionName)
      if (!mayTakeMinutes(functionName)) underWay.set(invocation, now())
      try {
        return await invoke()
      } catch (error) {
        if (!(error instanceof FunctionError && error.isTallied)) countFault()
        throw error
      } finally {
        underWay.delete(invocation)
      }
    },
    unanswered: (sinceMs) => {
      const since = [...faults].filter(([second]) => second >= secondOf(sinceMs))
      const [oldestMs] = underWay.values()
      return {
        faults: since.reduce((sum, [, count]) => sum + count, 0),
        ...(oldestMs !== undefined && { oldestMs }),
      }
    },
  }
}
