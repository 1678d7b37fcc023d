import { AwsServiceError } from '../http/error.ts'
import { type JsonObject, objectsIn } from '../http/request.ts'
import type { AwsCall } from '../http/service.ts'
import type { Engine } from './engine.ts'
import { orderFairly } from './fair-order.ts'
import type { Queue } from './fauxqs.ts'

/** Returns a function that performs ReceiveMessage. A long poll ends when its caller disconnects. */
export function createReceiver(engine: Engine) {
  const followClock = createClockFollower()
  const receiveNow = async (queue: Queue, call: AwsCall): Promise<JsonObject[]> => {
    followClock(queue)
    queue.processTimers()
    orderFairly(queue)
    const output = await engine.perform({ ...call, input: { ...call.input, WaitTimeSeconds: 0 } })
    return objectsIn(output['Messages'])
  }

  return async (call: AwsCall): Promise<JsonObject> => {
    const queue = engine.find(call.input['QueueUrl'])
    if (queue === undefined) throw new AwsServiceError('QueueDoesNotExist', 'The specified queue does not exist.')
    const deadlineMs = performance.now() + waitSecondsOf(queue, call.input) * 1000
    while (!call.signal.aborted) {
      const messages = await receiveNow(queue, call)
      const remainingMs = deadlineMs - performance.now()
      if (messages.length === 0 && remainingMs > 0) {
        await waitForMessages(queue, remainingMs, call.signal)
        continue
      }
      return { Messages: requestsAttributes(call.input) ? messages : messages.map(withoutAttributes) }
    }
    return {}
  }
}

/**
 * Returns a function that sets the stored times of a queue back after the system clock was set back. Otherwise messages
 * would wait until the clock reaches the stored times again.
 */
function createClockFollower(): (queue: Queue) => void {
  const startMsByQueue = new WeakMap<Queue, number>()
  return (queue) => {
    const nowMs = Date.now()
    const startMs = nowMs - performance.now()
    const backMs = (startMsByQueue.get(queue) ?? startMs) - startMs
    startMsByQueue.set(queue, startMs)
    if (backMs < 1000) return
    for (const entry of queue.inflightMessages.values()) entry.visibilityDeadline -= backMs
    for (const message of queue.delayedMessages.filter(({ sentTimestamp }) => sentTimestamp > nowMs)) {
      message.sentTimestamp -= backMs
      message.delayUntil = (message.delayUntil ?? 0) - backMs
    }
  }
}

/** Makes messages visible again that a disconnected caller did not receive. */
export function releaseMessages(engine: Engine, { input }: AwsCall, output: JsonObject): void {
  const queue = engine.find(input['QueueUrl'])
  for (const handle of handlesOf(objectsIn(output['Messages']))) queue?.changeVisibility(handle, 0)
}

const handlesOf = (messages: JsonObject[]) => messages.map((message) => String(message['ReceiptHandle']))

function waitSecondsOf(queue: Queue, input: JsonObject): number {
  return Number(input['WaitTimeSeconds'] ?? queue.attributes['ReceiveMessageWaitTimeSeconds'] ?? 0)
}

/** Resolves when messages may have arrived, at the timeout, or when the caller disconnects. */
async function waitForMessages(queue: Queue, waitMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const arrival = queue.waitForMessages(waitMs / 1000)
  const waiter = queue.pollWaiters.at(-1)
  const cancel = () => {
    queue.pollWaiters = queue.pollWaiters.filter((other) => other !== waiter)
    clearTimeout(waiter?.timer)
    waiter?.resolve()
  }
  signal.addEventListener('abort', cancel, { once: true })
  await arrival
  signal.removeEventListener('abort', cancel)
}

const requestsAttributes = (input: JsonObject) =>
  Array.isArray(input['MessageAttributeNames']) && input['MessageAttributeNames'].length > 0

/** AWS returns message attributes only on request; fauxqs always returns them. */
function withoutAttributes(message: JsonObject): JsonObject {
  const { MessageAttributes: _attributes, MD5OfMessageAttributes: _digest, ...rest } = message
  return rest
}
