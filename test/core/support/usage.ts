import { AsyncLocalStorage } from 'node:async_hooks'
import { vi } from 'vitest'
import { emulators } from '../../support/emulators.ts'

export interface Usage {
  calls: string[]
  /** The number of calls that started while no other was in flight. */
  rounds: number
  readUnits: number
  writeUnits: number
}

/** Distinguishes the calls of the measured work from those of other work in this process. */
const measurements = new AsyncLocalStorage<Usage & { inFlight: number }>()

interface Capacity {
  CapacityUnits?: number
}

/** The client repeats calls that a busy machine answers too late. */
const timedOutInputs = new WeakSet<object>()
const { call } = emulators

vi.spyOn(emulators, 'call').mockImplementation(async (target, input, signal) => {
  const usage = measurements.getStore()
  if (usage === undefined) return call(target, input, signal)
  const [service, operation = ''] = target.split('.')
  if (!timedOutInputs.delete(input)) {
    if (usage.inFlight === 0) usage.rounds++
    usage.calls.push(operation)
  }
  usage.inFlight++
  const measured = service === 'DynamoDB_20120810' ? { ...input, ReturnConsumedCapacity: 'TOTAL' } : input
  const output = await call(target, measured, signal)
    .catch((error) => {
      if (error.name === 'TimeoutError') timedOutInputs.add(input)
      throw error
    })
    .finally(() => usage.inFlight--)
  const capacities: Capacity[] = [output.ConsumedCapacity ?? []].flat()
  const units = capacities.reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0)
  usage[/Write|Put|Update|Delete/.test(operation) ? 'writeUnits' : 'readUnits'] += units
  return output
})

/** Runs the work and returns its usage of AWS. */
export async function measureUsage<Result>(work: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  const usage = { calls: [], rounds: 0, readUnits: 0, writeUnits: 0, inFlight: 0 }
  const result = await measurements.run(usage, work)
  return { result, usage }
}
