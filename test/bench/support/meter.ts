import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

export interface Usage {
  /** AWS action (`GetItem`, `SendMessage` …) → number of calls, including retries by the SDK. */
  calls: Record<string, number>
  rounds: number
  readUnits: number
  writeUnits: number
}

let calls: Record<string, number> = {}
let rounds = 0
let pending = 0

/** Returns the AWS action of a request, or undefined for other requests. */
function actionOf(message: unknown): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node documents the messages of these channels
  const { request } = message as { request: ClientRequest }
  return request.getHeader('x-amz-target')?.toString().split('.')[1]
}

subscribe('http.client.request.start', (message) => {
  const action = actionOf(message)
  if (action === undefined) return
  if (pending === 0) rounds++
  pending++
  calls[action] = (calls[action] ?? 0) + 1
})
subscribe('http.client.response.finish', (message) => {
  if (actionOf(message) !== undefined) pending--
})

/**
 * Measures `work`: the AWS calls of this process, and the capacity units that all processes use. Do not measure
 * concurrently.
 */
export async function metered<Result>(work: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  const unitsBefore = await capacityUnits()
  calls = {}
  rounds = 0
  const result = await work()
  const unitsAfter = await capacityUnits()
  const units = {
    readUnits: unitsAfter.readUnits - unitsBefore.readUnits,
    writeUnits: unitsAfter.writeUnits - unitsBefore.writeUnits,
  }
  const usage = { calls, rounds, ...units }
  calls = {}
  return { result, usage }
}

/** Returns the number of calls to DynamoDB. */
export const storeCallsOf = ({ calls }: Pick<Usage, 'calls'>): number =>
  Object.entries(calls).reduce((sum, [action, count]) => sum + (/Item|Query|Scan/.test(action) ? count : 0), 0)

interface Metrics {
  operations: Record<string, { readUnits: number; writeUnits: number }>
}

async function capacityUnits(): Promise<{ readUnits: number; writeUnits: number }> {
  const response = await fetch(`${process.env['AWS_ENDPOINT_URL_DYNAMODB']}/_metrics`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the emulator's own format
  const { operations } = (await response.json()) as Metrics
  const sum = (kind: 'readUnits' | 'writeUnits') =>
    Object.values(operations).reduce((units, operation) => units + operation[kind], 0)
  return { readUnits: sum('readUnits'), writeUnits: sum('writeUnits') }
}
