import { now } from '../clock.ts'
import { releaseForRetry, operationLeaseMs, renewLease } from './operation.ts'
import { type OperationRecord, type StoredStep } from './record.ts'

/** Renewal interval of the lease, for slow lifecycle hooks and image downloads. */
const renewMs = operationLeaseMs / 6

/** A claimed operation with its sequential writes. All throw `LeaseLost`. */
export interface OperationLease {
  /** As last written. */
  readonly operation: OperationRecord
  /** Starts a step: earlier ones are done, later ones pending. One call. */
  startStep: (step: string) => Promise<void>
  /** Renews the lease. One call. */
  renew: () => Promise<void>
  /** Leaves the operation to the next attempt, after a pause. One call. */
  releaseForRetry: (pauseMs: number, message: string) => Promise<void>
}

export function holdLease(begun: OperationRecord): OperationLease {
  let operation = begun
  let last: Promise<void> = Promise.resolve()
  const after = async (before: Promise<void>, make: (current: OperationRecord) => Promise<OperationRecord>) => {
    // The next write makes up for a transient error; a lost lease stays lost.
    await before.catch(() => undefined)
    operation = await make(operation)
  }
  const write = (make: (current: OperationRecord) => Promise<OperationRecord>): Promise<void> =>
    (last = after(last, make))
  return {
    get operation() {
      return operation
    },
    startStep: (step) => write((current) => renewLease(current, entered(current.steps, step))),
    renew: () => write((current) => renewLease(current)),
    releaseForRetry: (pauseMs, message) => releaseForRetry(operation, pauseMs, left(operation.steps, message)),
  }
}

/** Runs the work while renewing the lease. One call in ten seconds. */
export async function withRenewal<Result>(journal: OperationLease, work: () => Promise<Result>): Promise<Result> {
  // The next write reports a lost lease.
  const timer = setInterval(() => void journal.renew().catch(() => undefined), renewMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

function entered(steps: readonly StoredStep[], name: string): StoredStep[] {
  const place = steps.findIndex((step) => step.name === name)
  return steps.map((step, index) => {
    if (index < place)
      return step.status === 'Completed' ? step : { ...step, status: 'Completed', completedAtMs: now() }
    if (index > place) return { name: step.name, status: 'Pending' }
    return { name, status: 'Running', startedAtMs: step.startedAtMs ?? now() }
  })
}

const messageLength = 1000

const left = (steps: readonly StoredStep[], message: string): StoredStep[] =>
  steps.map((step) => {
    const tried = `Retrying after: ${message}`.slice(0, messageLength).toWellFormed()
    return step.status === 'Running' ? { ...step, message: tried } : step
  })
