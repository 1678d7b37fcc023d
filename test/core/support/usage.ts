import { AsyncLocalStorage } from 'node:async_hooks'
import { awsTransport } from '@platform/core/aws/sdk'
import { client } from '@platform/core/db/table'
import { vi } from 'vitest'

export interface Usage {
  calls: string[]
  /** The number of calls that started while no other was in flight. */
  rounds: number
  readUnits: number
  writeUnits: number
}

/** Distinguishes the calls of the measured work from those of other work in this process. */
const measurements = new AsyncLocalStorage<Usage & { inFlight: number }>()

const transport = awsTransport()
if (!('signer' in transport)) throw new Error('The tests of core call the emulators without HTTP.')
const { requestHandler } = transport
const originalHandle = requestHandler.handle

vi.spyOn(requestHandler, 'handle').mockImplementation(async (request, options) => {
  const usage = measurements.getStore()
  if (usage === undefined) return originalHandle(request, options)
  const isRetry = !/attempt=1\b/.test(String(request.headers['amz-sdk-request']))
  if (usage.inFlight++ === 0 && !isRetry) usage.rounds++
  // The client repeats calls that a busy machine answers too late.
  if (!isRetry) usage.calls.push(request.headers['x-amz-target']?.split('.')[1] ?? '')
  return originalHandle(request, options).finally(() => usage.inFlight--)
})

interface Capacity {
  CapacityUnits?: number
}

client.middlewareStack.add(
  (next, context) => async (args) => {
    const usage = measurements.getStore()
    if (usage === undefined) return next(args)
    Object.assign(args.input, { ReturnConsumedCapacity: 'TOTAL' })
    const result = await next(args)
    const { ConsumedCapacity = [] } = result.output as { ConsumedCapacity?: Capacity | Capacity[] }
    const units = [ConsumedCapacity].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0)
    usage[/Write|Put|Update|Delete/.test(String(context['commandName'])) ? 'writeUnits' : 'readUnits'] += units
    return result
  },
  { step: 'initialize', name: 'usage' },
)

/** Runs the work and returns its usage of AWS. */
export async function measureUsage<Result>(work: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  const usage = { calls: [], rounds: 0, readUnits: 0, writeUnits: 0, inFlight: 0 }
  const result = await measurements.run(usage, work)
  return { result, usage }
}
