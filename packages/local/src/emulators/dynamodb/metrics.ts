import type { Usage } from './types.ts'

interface OperationMetrics extends Usage {
  calls: number
  /** Calls that were refused, broken or left hanging. */
  failures: number
}

/** Calls and capacity by operation, since the start or the last reset. */
export class Metrics {
  #operations: Record<string, OperationMetrics> = {}

  read(): Readonly<Record<string, Readonly<OperationMetrics>>> {
    return this.#operations
  }

  reset(): void {
    this.#operations = {}
  }

  /** Counts a call and gives it a place to note its usage. */
  begin(operation: string): OperationMetrics {
    const metrics = (this.#operations[operation] ??= { calls: 0, failures: 0, readUnits: 0, writeUnits: 0 })
    metrics.calls += 1
    return metrics
  }
}
