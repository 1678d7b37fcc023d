import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

/** What a piece of work cost. */
export interface Usage {
  /** Calls of AWS actions, the SDK's own retries included: `GetItem`, `SendMessage`, `GetSecretValue` …. */
  calls: Record<string, number>
  /** How many of them had to wait for another one. */
  rounds: number
  readUnits: number
  writeUnits: number
}

/** Actions that the stand-in for DynamoDB has ever been asked for. */
export const actionsSeen = new Set<string>()

let calls: string[] = []
let rounds = 0
let underWay = 0

/** The action of AWS that a request asks for; undefined where it goes to somebody else. */
function actionOf(message: unknown): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node documents what these channels carry
  const { request } = message as { request: ClientRequest }
  return request.getHeader('x-amz-target')?.toString().split('.')[1]
}

subscribe('http.client.request.start', (message) => {
  const action = actionOf(message)
  if (action === undefined) return
  if (underWay === 0) rounds++
  underWay++
  calls.push(action)
})
subscribe('http.client.response.finish', (message) => {
  if (actionOf(message) !== undefined) underWay--
})

/** Does a piece of work, and tells what it cost. One at a time; only AWS clients of this process are counted. */
export async function metered<Result>(work: () => Promise<Result>): Promise<{ result: Result; usage: Usage }> {
  await takeUnits()
  calls = []
  rounds = 0
  const result = await work()
  return { result, usage: { calls: countOf(calls), rounds, ...(await takeUnits()) } }
}

const countOf = (names: readonly string[]): Record<string, number> =>
  Object.fromEntries([...new Set(names)].map((name) => [name, names.filter((each) => each === name).length]))

/** Calls that write. */
export const writesOf = ({ calls: made }: Usage): number =>
  Object.entries(made).reduce((sum, [action, count]) => sum + (/Write|Put|Update|Delete/.test(action) ? count : 0), 0)

/** Calls of DynamoDB; messages and secrets are none. */
export const storeCallsOf = ({ calls: made }: Usage): number =>
  Object.entries(made).reduce((sum, [action, count]) => sum + (/Item|Query|Scan/.test(action) ? count : 0), 0)

interface Metrics {
  operations: Record<string, { readUnits: number; writeUnits: number }>
}

/** The units counted so far when they were last read. */
let before = { readUnits: 0, writeUnits: 0 }

/** The capacity units that the store counted since the last call. */
async function takeUnits(): Promise<{ readUnits: number; writeUnits: number }> {
  const url = process.env['AWS_ENDPOINT_URL_DYNAMODB'] ?? ''
  const response = await fetch(`${url}/_metrics`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own stand-in answers
  const { operations } = (await response.json()) as Metrics
  for (const action of Object.keys(operations)) actionsSeen.add(action)
  const sum = (kind: 'readUnits' | 'writeUnits') =>
    Object.values(operations).reduce((units, operation) => units + operation[kind], 0)
  const last = before
  before = { readUnits: sum('readUnits'), writeUnits: sum('writeUnits') }
  return { readUnits: before.readUnits - last.readUnits, writeUnits: before.writeUnits - last.writeUnits }
}
