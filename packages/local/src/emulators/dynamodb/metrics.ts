import type { Usage } from './types.ts'

interface OperationMetrics extends Usage {
  calls: number
  /** Calls that were rejected or got no response. */
  failures: number
}

export class Metrics {
  readonly #operations: Record<string, OperationMetrics> = {}

  read(): Readonly<Record<string, Readonly<OperationMetrics>>> {
    return this.#operations
  }

  begin(operation: string): OperationMetrics {
    const metrics = (this.#operations[operation] ??= { calls: 0, failures: 0, readUnits: 0, writeUnits: 0 })
    metrics.calls += 1
    return metrics
  }
}
