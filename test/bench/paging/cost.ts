import type { GatewayHandler } from '@platform/http/response'
import { send, type TestRequest } from '../../support/request.ts'
import { metered, storeCallsOf } from '../support/meter.ts'
import { range, spread } from '../support/statistics.ts'
import { accepted } from '../support/tenant.ts'

/** What one page of a list costs. */
export interface PageCost {
  calls: number
  readUnits: number
  medianMs: number
  answerBytes: number
}

/** How often a page is read for its time. */
const repeats = 9

/** Reads a page again and again; it must not be empty. */
export async function costOf(handler: GatewayHandler, request: TestRequest): Promise<PageCost> {
  const ask = () => send(handler, request)
  // A process reads its keys once.
  await ask()
  const { result, usage } = await metered(ask)
  const { items } = accepted(result).json
  if (items.length === 0) throw new Error(`${request.target} is empty.`)
  const times: number[] = []
  for (const _ of range(repeats)) {
    const startedAtMs = performance.now()
    await ask()
    times.push(performance.now() - startedAtMs)
  }
  const { readUnits } = usage
  const answerBytes = Buffer.byteLength(result.text)
  return { calls: storeCallsOf(usage), readUnits, medianMs: spread(times).median, answerBytes }
}
