import type { CloudEvent } from '@platform/contract/event'
import type { Deployment } from '@platform/core/modules/deployment'
import * as z from 'zod'
import type { ModuleClient, ModuleRuntime } from '../../runtimes/port.ts'
import type { EventsResponse, EventsRequest, PublishedEvent } from '@platform/modules/protocol'
import { callControl, sanitize } from './control-client.ts'

/** Each event is either handled or failed. */
export interface Delivery {
  handled: string[]
  failed: { id: string; message: string }[]
  /** Reason why the call failed. All events then count as failed, although some may have been handled. */
  problem?: string
  published: PublishedEvent[]
}

const id = z.string().max(200)
const Response: z.ZodType<EventsResponse> = z.object({
  handled: z.array(id).max(1000),
  failed: z.array(z.object({ id, message: z.string() })).max(1000),
})

/** Delivers events to a module in order. Never throws. */
export async function deliverEvents(
  runtime: ModuleClient,
  deployment: Deployment,
  events: readonly CloudEvent[],
  timeoutMs = 30_000,
): Promise<Delivery> {
  const body: EventsRequest = { events }
  const request = { method: 'POST', path: '/events', body, limitMs: timeoutMs, schema: Response } as const
  const response = await callControl(runtime, deployment, request)
  const { published } = response
  if (!response.isDone) {
    const { message } = response
    return { handled: [], failed: events.map((event) => ({ id: event.id, message })), problem: message, published }
  }
  const handledIds = new Set(response.body.handled)
  const messages = new Map(response.body.failed.map((failure) => [failure.id, sanitize(failure.message)]))
  const failedEvents = events.filter((event) => !handledIds.has(event.id))
  return {
    handled: events.flatMap((event) => (handledIds.has(event.id) ? [event.id] : [])),
    failed: failedEvents.map((event) => ({ id: event.id, message: messages.get(event.id) ?? 'No reason reported.' })),
    published,
  }
}

/** `Skipped`: the previous run has not ended. */
export interface JobRun {
  outcome: 'Completed' | 'Skipped' | 'Failed'
  message?: string
  published: PublishedEvent[]
}

const JobResponse = z.object({ hasRun: z.boolean() })

/** Runs a background job. Never throws. */
export async function runJob(
  runtime: ModuleRuntime,
  deployment: Deployment,
  jobId: string,
  timeoutMs: number,
): Promise<JobRun> {
  const path = `/jobs/${encodeURIComponent(jobId)}`
  const response = await callControl(runtime, deployment, {
    method: 'POST',
    path,
    limitMs: timeoutMs,
    schema: JobResponse,
  })
  const { published } = response
  if (!response.isDone) return { outcome: 'Failed', message: response.message, published }
  return { outcome: response.body.hasRun ? 'Completed' : 'Skipped', published }
}
