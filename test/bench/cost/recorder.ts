import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { tasks } from '@platform/contract/task'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import type { QueueResult } from '@platform/http/consume'
import { send, type TestRequest } from '../../support/request.ts'
import { metered, storeCallsOf, type Usage } from '../support/meter.ts'
import { expectSuccess } from '../support/requests.ts'
import { handlerFor } from '../support/tenant.ts'

const noUsage = {
  invocations: 0,
  requests: 0,
  /** Requests as the gateway bills them: one for each started 512 KB of the larger of request and response. */
  meteredRequests: 0,
  responseBytes: 0,
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

export interface Cost extends Record<keyof typeof noUsage, number> {
  per: number
  functions: Record<string, { invocations: number; rounds: number }>
  /** Metrics that were written, as `<function> <name>`. */
  metrics: string[]
  /** DynamoDB action → calls. */
  actions: Record<string, number>
}

const gatewayUnitBytes = 512 * 1024

const queues = [
  { name: 'queue/batches', url: config.PLAT_QUEUE_BATCHES },
  { name: 'queue/events', url: config.PLAT_QUEUE_EVENTS },
  { name: 'queue/webhooks', url: config.PLAT_QUEUE_WEBHOOKS },
] as const

const sqs = new SQSClient()

/** Advances only `elapsedMs` by a second, so that changes do not count as frequent. */
export function passSecond(): void {
  shiftClock(1000)
  shiftClock(-1000)
}

export class Recorder {
  readonly costs = new Map<string, Cost>()
  #flow: string | undefined

  async measure(flow: string, work: () => Promise<unknown>, per = 1): Promise<void> {
    this.#flow = flow
    try {
      await work()
      this.#cost(flow).per = per
    } finally {
      this.#flow = undefined
    }
  }

  async request(functionName: string, request: TestRequest, operation?: string): Promise<any> {
    const handler = await handlerFor(functionName)
    const response = expectSuccess(await this.invoke(functionName, () => send(handler, request), operation))
    const requestBytes = Buffer.byteLength(JSON.stringify(request.headers ?? {}) + String(request.body ?? ''))
    const responseBytes = Buffer.byteLength(JSON.stringify(response.headers)) + response.bytes.length
    this.#add(operation, {
      requests: 1,
      meteredRequests: Math.ceil(Math.max(requestBytes, responseBytes) / gatewayUnitBytes),
      responseBytes,
    })
    return response.json
  }

  async invoke<Result>(functionName: string, work: () => Promise<Result>, operation?: string): Promise<Result> {
    const output = captureOutput()
    const { result, usage } = await metered(work).finally(output.release)
    const logs = output.lines().filter((line) => !line.includes('"_aws"'))
    const metrics = output.lines().filter((line) => line.includes('"_aws"'))
    this.#add(operation, {
      invocations: 1,
      storeCalls: storeCallsOf(usage),
      rounds: usage.rounds,
      readUnits: usage.readUnits,
      writeUnits: usage.writeUnits,
      messages: (usage.calls['SendMessage'] ?? 0) + (usage.calls['SendMessageBatch'] ?? 0),
      secretReads: usage.calls['GetSecretValue'] ?? 0,
      logLines: logs.length,
      logBytes: Buffer.byteLength(logs.join('')),
      metricLines: metrics.length,
      metricBytes: Buffer.byteLength(metrics.join('')),
    })
    for (const cost of this.#costsFor(operation)) addInvocation(cost, functionName, usage, metrics)
    return result
  }

  /** Delivers waiting messages to their consumers, as Lambda does, until all queues are empty. */
  async deliverMessages(): Promise<void> {
    passSecond()
    for (let isEmpty = false; !isEmpty;) {
      isEmpty = true
      for (const { name, url } of queues) {
        const { batchSize } = tasks[name].trigger
        for (
          let messages = await receive(url, batchSize);
          messages.length > 0;
          messages = await receive(url, batchSize)
        ) {
          isEmpty = false
          await this.#consume(name, messages)
          const Entries = messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
          await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }))
        }
      }
    }
  }

  async #consume(name: string, messages: readonly Message[]): Promise<void> {
    // Skip the delayed checks that sweeps send, because they would count for a later flow. The flow of the sweep
    // invokes its own checks.
    const Records = messages
      .filter(({ Body = '' }) => JSON.parse(Body).sweep === undefined)
      .map(({ MessageId, Body }) => ({ messageId: MessageId, body: Body }))
    if (Records.length === 0) return
    const handler: (event: object) => Promise<QueueResult> = await handlerFor(name)
    const result = await this.invoke(name, () => handler({ Records }))
    if (result.batchItemFailures.length > 0) throw new Error(`${name} failed.`)
  }

  #costsFor(operation: string | undefined): Cost[] {
    return [operation, this.#flow].flatMap((name) => (name === undefined ? [] : [this.#cost(name)]))
  }

  #cost(name: string): Cost {
    const cost = this.costs.get(name) ?? { ...noUsage, per: 1, functions: {}, metrics: [], actions: {} }
    this.costs.set(name, cost)
    return cost
  }

  #add(operation: string | undefined, usage: Partial<typeof noUsage>): void {
    for (const cost of this.#costsFor(operation))
      for (const [name, value] of Object.entries(usage)) cost[name as keyof typeof noUsage] += value
  }
}

async function receive(url: string, batchSize: number): Promise<Message[]> {
  const command = new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: batchSize })
  return (await sqs.send(command)).Messages ?? []
}

function addInvocation(cost: Cost, functionName: string, { calls, rounds }: Usage, metricLines: readonly string[]) {
  const entry = (cost.functions[functionName] ??= { invocations: 0, rounds: 0 })
  entry.invocations++
  entry.rounds += rounds
  for (const [action, count] of Object.entries(calls)) cost.actions[action] = (cost.actions[action] ?? 0) + count
  const names = metricLines.flatMap((line) => JSON.parse(line)['_aws'].CloudWatchMetrics[0].Metrics)
  const metrics = names.map(({ Name }) => `${functionName} ${Name}`)
  cost.metrics = [...new Set([...cost.metrics, ...metrics])].toSorted()
}

function captureOutput() {
  const chunks: string[] = []
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = (chunk: string | Uint8Array): boolean => chunks.push(String(chunk)) > 0
  return {
    release: () => void (process.stdout.write = write),
    lines: () => chunks.join('').split('\n').filter(Boolean),
  }
}
