import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'
import { client } from '@platform/core/db/table'

/** What a piece of work cost this process: the stand-ins' own counters are shared with other test files. */
export interface Usage {
  /** AWS actions in the order of their calls. */
  calls: string[]
  /** How many of them had to wait for another one. */
  rounds: number
  readUnits: number
  writeUnits: number
}

let usage: Usage = { calls: [], rounds: 0, readUnits: 0, writeUnits: 0 }
let underWay = 0

subscribe('http.client.request.start', (message) => {
  const { request } = message as { request: ClientRequest }
  const action = request.getHeader('x-amz-target')?.toString().split('.')[1]
  if (action === undefined) return
  if (underWay++ === 0) usage.rounds++
  usage.calls.push(action)
})
subscribe('http.client.response.finish', () => underWay--)

/** What the store says that a command has cost. */
interface Capacity {
  CapacityUnits?: number
}

client.middlewareStack.add(
  (next, context) => async (args) => {
    Object.assign(args.input, { ReturnConsumedCapacity: 'TOTAL' })
    const answer = await next(args)
    const { ConsumedCapacity = [] } = answer.output as { ConsumedCapacity?: Capacity | Capacity[] }
    const units = [ConsumedCapacity].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0)
    const isWrite = /Write|Put|Update|Delete/.test(String(context['commandName']))
    usage[isWrite ? 'writeUnits' : 'readUnits'] += units
    return answer
  },
  { step: 'initialize', name: 'usage' },
)

/** Does a piece of work, and tells what it cost. One at a time. */
export async function measureUsage<Result>(work: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  usage = { calls: [], rounds: 0, readUnits: 0, writeUnits: 0 }
  const result = await work()
  return { result, usage }
}
