import { Counter, Gauge, type Registry } from 'prom-client'
import { FunctionTimeout } from '../functions/errors.ts'
import type { FunctionPool } from '../functions/pool.ts'

export interface FunctionMetrics {
  withMetrics: (invoke: Invoke) => Invoke
}

type Invoke = FunctionPool['invoke']

interface Invocation {
  functionName: string
  event: unknown
  result?: unknown
  error?: unknown
  hasFailed: boolean
}

export function createFunctionMetrics(registry: Registry): FunctionMetrics {
  const registers = [registry]
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers })
  const invocations = counter('platform_function_invocations_total', 'Invocations of functions.', 'function')
  const failures = counter('platform_function_failures_total', 'Invocations that threw or timed out.', 'function')
  const timeouts = counter('platform_function_timeouts_total', 'Invocations that timed out.', 'function')
  const inFlight = new Gauge({ name: 'platform_functions_in_flight', help: 'Running invocations.', registers })
  const messages = counter('platform_messages_total', 'Messages delivered to consumers.', 'queue', 'outcome')
  const runs = counter('platform_schedule_runs_total', 'Scheduled runs.', 'schedule', 'outcome')
  const lastSuccess = new Gauge({
    name: 'platform_schedule_last_success_timestamp_seconds',
    help: 'Time of the last successful run.',
    labelNames: ['schedule'],
    registers,
  })

  const record = (invocation: Invocation): void => {
    const { functionName, error, hasFailed } = invocation
    invocations.inc({ function: functionName })
    if (hasFailed) failures.inc({ function: functionName })
    if (error instanceof FunctionTimeout) timeouts.inc({ function: functionName })
    const [kind, name = ''] = functionName.split('/')
    if (kind === 'queue') recordMessages(messages, name, invocation)
    if (kind !== 'schedule') return
    runs.inc({ schedule: name, outcome: hasFailed ? 'failed' : 'done' })
    if (!hasFailed) lastSuccess.set({ schedule: name }, Date.now() / 1000)
  }
  return {
    withMetrics: (invoke) => async (functionName, event, requestId) => {
      inFlight.inc()
      try {
        const result = await invoke(functionName, event, requestId)
        record({ functionName, event, result, hasFailed: false })
        return result
      } catch (error) {
        record({ functionName, event, error, hasFailed: true })
        throw error
      } finally {
        inFlight.dec()
      }
    },
  }
}

function recordMessages(messages: Counter, queue: string, { event, result, hasFailed }: Invocation): void {
  const receivedCount = listLength(event, 'Records')
  const failedCount = hasFailed ? receivedCount : Math.min(listLength(result, 'batchItemFailures'), receivedCount)
  messages.inc({ queue, outcome: 'failed' }, failedCount)
  messages.inc({ queue, outcome: 'done' }, receivedCount - failedCount)
}

function listLength(object: unknown, name: string): number {
  const list: unknown = typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined
  return Array.isArray(list) ? list.length : 0
}
