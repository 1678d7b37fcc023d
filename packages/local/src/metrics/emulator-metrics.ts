import { Counter, type Registry } from 'prom-client'
import * as z from 'zod'
import type { EmulatorAddresses } from '../emulators/http/environment.ts'
import { gauge, type Metrics } from './metrics.ts'

const Depths = z.object({
  queues: z.array(
    z.object({
      name: z.string(),
      waiting: z.number(),
      inFlight: z.number(),
      delayed: z.number(),
      oldestSentMs: z.number(),
    }),
  ),
})
const StoreCalls = z.object({ operations: z.record(z.string(), z.object({ calls: z.number(), failures: z.number() })) })

/** An emulator that is too busy to respond must not block the other metrics. */
const timeoutMs = 2000

export function watchEmulators({ registry, onScrape }: Metrics, { sqsUrl, dynamoDbUrl }: EmulatorAddresses): void {
  onScrape(createQueueReader(registry, `${sqsUrl}/_queues`))
  onScrape(createStoreReader(registry, `${dynamoDbUrl}/_metrics`))
}

/** Returns undefined if there is no valid response within the time limit. */
async function readJson<Schema extends z.ZodType>(url: string, schema: Schema): Promise<z.output<Schema> | undefined> {
  try {
    return schema.parse(await (await fetch(url, { signal: AbortSignal.timeout(timeoutMs) })).json())
  } catch {
    return undefined
  }
}

function createQueueReader(registry: Registry, url: string): () => Promise<void> {
  const messages = gauge(registry, 'platform_queue_messages', 'Messages in a queue.', ['queue', 'state'])
  const ageGauge = gauge(
    registry,
    'platform_queue_oldest_message_age_seconds',
    'Age of the oldest waiting or in-flight message; 0 without messages.',
    ['queue'],
  )
  return async () => {
    const { queues = [] } = (await readJson(url, Depths)) ?? {}
    messages.reset()
    ageGauge.reset()
    for (const { name: queue, waiting, inFlight, delayed, oldestSentMs } of queues) {
      messages.set({ queue, state: 'waiting' }, waiting)
      messages.set({ queue, state: 'in_flight' }, inFlight)
      messages.set({ queue, state: 'delayed' }, delayed)
      ageGauge.set({ queue }, oldestSentMs === 0 ? 0 : Math.max(0, Date.now() - oldestSentMs) / 1000)
    }
  }
}

function createStoreReader(registry: Registry, url: string): () => Promise<void> {
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: ['operation'], registers: [registry] })
  const calls = counter('platform_store_calls_total', 'Calls of the store.')
  const failures = counter('platform_store_failures_total', 'Rejected or failed calls of the store.')
  return async () => {
    const { operations = {} } = (await readJson(url, StoreCalls)) ?? {}
    calls.reset()
    failures.reset()
    for (const [operation, usage] of Object.entries(operations)) {
      calls.inc({ operation }, usage.calls)
      failures.inc({ operation }, usage.failures)
    }
  }
}
