import type { GatewayHandler } from '@platform/http/response'
import { type TestResponse, send, type TestRequest } from '../../support/request.ts'
import { metered, storeCallsOf, type Usage } from '../support/meter.ts'
import { accepted } from '../support/tenant.ts'
import { holdOutput } from './output.ts'

/** What some invocations took, summed. Bytes are those of bodies and headers. */
export interface Taken {
  invocations: number
  /** Requests at the gateway, and how many it counts for them: one for each 512 KB. */
  requests: number
  meteredRequests: number
  requestBytes: number
  answerBytes: number
  storeCalls: number
  rounds: number
  readUnits: number
  writeUnits: number
  messages: number
  secretReads: number
  logLines: number
  logBytes: number
  /** Of the lines of metrics. */
  metricLines: number
  metricBytes: number
}

/** What a piece of work took, and where. */
export interface Flow {
  taken: Taken
  functions: Record<string, { invocations: number; rounds: number }>
  /** Metrics that were written, as `<function> <name>`. */
  metrics: Set<string>
}

const none: Taken = {
  invocations: 0,
  requests: 0,
  meteredRequests: 0,
  requestBytes: 0,
  answerBytes: 0,
  storeCalls: 0,
  rounds: 0,
  readUnits: 0,
  writeUnits: 0,
  messages: 0,
  secretReads: 0,
  logLines: 0,
  logBytes: 0,
  metricLines: 0,
  metricBytes: 0,
}

export const newFlow = (): Flow => ({ taken: { ...none }, functions: {}, metrics: new Set() })

const gatewayBytes = 512 * 1024

/** Sends a request, and adds what it took to a flow. */
export async function request(
  flow: Flow,
  name: string,
  handler: GatewayHandler,
  sent: TestRequest,
): Promise<TestResponse> {
  const received = accepted(await invoke(flow, name, () => send(handler, sent)))
  const requestBytes = bytesOf(JSON.stringify(sent.headers ?? {})) + bytesOf(sent.body ?? '')
  const answerBytes = bytesOf(JSON.stringify(received.headers)) + received.bytes.length
  const { taken } = flow
  taken.requests++
  taken.meteredRequests += Math.ceil(Math.max(requestBytes, answerBytes) / gatewayBytes)
  taken.requestBytes += requestBytes
  taken.answerBytes += answerBytes
  return received
}

const bytesOf = (body: string | Uint8Array): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.length

/** Invokes a function, and adds what it took to a flow. */
export async function invoke<Result>(flow: Flow, name: string, work: () => Promise<Result>): Promise<Result> {
  const output = holdOutput()
  try {
    const { result, usage } = await metered(work)
    note(flow, name, usage)
    return result
  } finally {
    noteOutput(flow, name, output.release())
  }
}

function note({ taken, functions }: Flow, name: string, usage: Usage): void {
  const own = (functions[name] ??= { invocations: 0, rounds: 0 })
  own.invocations++
  own.rounds += usage.rounds
  taken.invocations++
  taken.storeCalls += storeCallsOf(usage)
  taken.rounds += usage.rounds
  taken.readUnits += usage.readUnits
  taken.writeUnits += usage.writeUnits
  taken.messages += (usage.calls['SendMessage'] ?? 0) + (usage.calls['SendMessageBatch'] ?? 0)
  taken.secretReads += usage.calls['GetSecretValue'] ?? 0
}

function noteOutput({ taken, metrics }: Flow, name: string, lines: readonly string[]): void {
  for (const line of lines) {
    if (line.includes('"_aws"')) {
      taken.metricLines++
      taken.metricBytes += Buffer.byteLength(line)
      for (const { Name } of JSON.parse(line)['_aws'].CloudWatchMetrics[0].Metrics) metrics.add(`${name} ${Name}`)
    } else {
      taken.logLines++
      taken.logBytes += Buffer.byteLength(line)
    }
  }
}
