import { type CloudEvent } from '@platform/contract/event'
import { type Deployment } from '@platform/core/modules/record'
import * as z from 'zod'
import { type ModuleClient } from '../../runtimes/port.ts'
import { type EventsAnswer, type EventsRequest, type PublishedEvent } from '@platform/modules/protocol'
import { callControl, plain } from './control-client.ts'

/** The result of event delivery: each event is handled or failed. */
export interface Delivery {
  /** Event ids. */
  handled: string[]
  failed: { id: string; message: string }[]
  /** Why the module could not be called. All events then count as failed, although some may have been handled. */
  problem?: string
  published: PublishedEvent[]
}

const id = z.string().max(200)
const Answer: z.ZodType<EventsAnswer> = z.object({
  handled: z.array(id).max(1000),
  failed: z.array(z.object({ id, message: z.string() })).max(1000),
})

/** Delivers events to a module in order. Failed events may be delivered again. Never throws. */
export async function deliverEvents(
  runtime: ModuleClient,
  deployment: Deployment,
  events: readonly CloudEvent[],
  timeoutMs = 30_000,
): Promise<Delivery> {
  const body: EventsRequest = { events }
  const question = { method: 'POST', path: '/events', body, limitMs: timeoutMs, answer: Answer } as const
  const asked = await callControl(runtime, deployment, question)
  const { published } = asked
  if (!asked.isDone) {
    const { message } = asked
    return { handled: [], failed: events.map((event) => ({ id: event.id, message })), problem: message, published }
  }
  const handled = new Set(asked.body.handled)
  const messages = new Map(asked.body.failed.map((failure) => [failure.id, plain(failure.message)]))
  const failed = events.filter((event) => !handled.has(event.id))
  return {
    handled: events.flatMap((event) => (handled.has(event.id) ? [event.id] : [])),
    failed: failed.map((event) => ({ id: event.id, message: messages.get(event.id) ?? 'It does not say why.' })),
    published,
  }
}
