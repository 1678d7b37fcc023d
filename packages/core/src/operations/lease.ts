import { now } from '../clock.ts'
import { releaseForRetry, operationLeaseMs, renewLease } from './operation.ts'
import type { OperationRecord, StoredStep } from './record.ts'

/** Each attempt renews its lease at this interval. */
const renewalIntervalMs = operationLeaseMs / 6

/**
 * `startStep` and `renew` write sequentially. All methods throw `LeaseLost` if another worker has claimed the
 * operation, or the operation has ended.
 */
export interface OperationLease {
  readonly operation: OperationRecord
  startStep: (step: string) => Promise<void>
  renew: () => Promise<void>
  /** `pauseMs` is the time until the next attempt may start. */
  releaseForRetry: (pauseMs: number, message: string) => Promise<void>
}

export function holdLease(claimedOperation: OperationRecord): OperationLease {
  let operation = claimedOperation
  let lastWrite: Promise<void> = Promise.resolve()
  const writeAfter = async (
    previousWrite: Promise<void>,
    change: (operation: OperationRecord) => Promise<OperationRecord>,
  ) => {
    // A failed write must not block the next one. After a lost lease, every write fails.
    await previousWrite.catch(() => undefined)
    operation = await change(operation)
  }
  const write = (change: (operation: OperationRecord) => Promise<OperationRecord>): Promise<void> =>
    (lastWrite = writeAfter(lastWrite, change))
  return {
    get operation() {
      return operation
    },
    startStep: (step) => write((operation) => renewLease(operation, withRunningStep(operation.steps, step))),
    renew: () => write((operation) => renewLease(operation)),
    releaseForRetry: (pauseMs, message) =>
      releaseForRetry(operation, pauseMs, withRetryMessage(operation.steps, message)),
  }
}

export async function withRenewal<Result>(lease: OperationLease, work: () => Promise<Result>): Promise<Result> {
  // Errors are ignored, because the next write reports a lost lease.
  const timer = setInterval(() => void lease.renew().catch(() => undefined), renewalIntervalMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

function withRunningStep(steps: readonly StoredStep[], name: string): StoredStep[] {
  const runningIndex = steps.findIndex((step) => step.name === name)
  return steps.map((step, index) => {
    if (index < runningIndex) {
      return step.status === 'Completed' ? step : { ...step, status: 'Completed', completedAtMs: now() }
    }
    if (index > runningIndex) return { name: step.name, status: 'Pending' }
    return { name, status: 'Running', startedAtMs: step.startedAtMs ?? now() }
  })
}

const maxMessageLength = 1000

const withRetryMessage = (steps: readonly StoredStep[], error: string): StoredStep[] => {
  const message = `Retrying after: ${error}`.slice(0, maxMessageLength).toWellFormed()
  return steps.map((step) => (step.status === 'Running' ? { ...step, message } : step))
}
