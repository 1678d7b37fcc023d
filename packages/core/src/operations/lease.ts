import { now } from '../clock.ts'
import { releaseForRetry, operationLeaseMs, renewLease } from './operation.ts'
import { type OperationRecord, type StoredStep } from './record.ts'

/** The claim is renewed so often while a slow hook runs, or an image is on its way. */
const renewMs = operationLeaseMs / 6

/** An operation under way: what its worker writes of it, one thing after the other. All of it throws `OperationLost`. */
export interface OperationLease {
  /** As it was written last. */
  readonly operation: OperationRecord
  /** Begins a step: those before it are done, those behind it are not. One call. */
  enter: (step: string) => Promise<void>
  /** Makes sure that the operation is still this worker's. One call. */
  keep: () => Promise<void>
  /** Leaves the operation to the next try, after a pause. One call. */
  leave: (pauseMs: number, message: string) => Promise<void>
}

export function holdLease(begun: OperationRecord): OperationLease {
  let operation = begun
  let last: Promise<void> = Promise.resolve()
  const after = async (before: Promise<void>, make: (current: OperationRecord) => Promise<OperationRecord>) => {
    // A write that failed in passing is made up for by the next one; an operation that is lost stays lost.
    await before.catch(() => undefined)
    operation = await make(operation)
  }
  const write = (make: (current: OperationRecord) => Promise<OperationRecord>): Promise<void> =>
    (last = after(last, make))
  return {
    get operation() {
      return operation
    },
    enter: (step) => write((current) => renewLease(current, entered(current.steps, step))),
    keep: () => write((current) => renewLease(current)),
    leave: (pauseMs, message) => releaseForRetry(operation, pauseMs, left(operation.steps, message)),
  }
}

/** Does some work while the claim is renewed. One call in ten seconds. */
export async function withRenewal<Result>(journal: OperationLease, work: () => Promise<Result>): Promise<Result> {
  // Whoever writes next hears that the operation is lost.
  const timer = setInterval(() => void journal.keep().catch(() => undefined), renewMs)
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
    const tried = `It is tried again after: ${message}`.slice(0, messageLength).toWellFormed()
    return step.status === 'Running' ? { ...step, message: tried } : step
  })
