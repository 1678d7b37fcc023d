import type { JsonObject } from '../aws-request.ts'
import type { AwsCall } from '../aws-server.ts'
import type { Engine } from './engine.ts'
import type { FaultSwitches } from './faults.ts'
import type { Message, Queue } from './fauxqs.ts'

/** A message as ReceiveMessage answers it. */
interface Received {
  ReceiptHandle: string
  MessageAttributes?: unknown
  MD5OfMessageAttributes?: unknown
}

/** ReceiveMessage, whose long polls end when their caller hangs up, so that no message goes to a dead connection. */
export function createReceiver(engine: Engine, faults: FaultSwitches) {
  const extraDeliveries = new WeakSet<Message>()

  const take = async (queue: Queue, call: AwsCall): Promise<Received[]> => {
    if (faults.strikes('reorderRate')) faults.shuffle(queue.messages)
    const output = await engine.perform({ ...call, input: { ...call.input, WaitTimeSeconds: 0 } })
    return (output['Messages'] ?? []) as Received[]
  }

  const deliverAgain = (queue: Queue, { ReceiptHandle: handle }: Received) => {
    const original = queue.inflightMessages.get(handle)?.message
    if (original === undefined || extraDeliveries.has(original) || !faults.strikes('duplicateRate')) return
    const extra = { ...original }
    extraDeliveries.add(extra)
    queue.enqueue(extra)
  }

  return async (call: AwsCall): Promise<JsonObject> => {
    const queue = engine.queue(call.input['QueueUrl'])
    const deadlineMs = Date.now() + waitSeconds(queue, call.input) * 1000
    while (!call.signal.aborted) {
      const messages = await take(queue, call)
      const leftMs = deadlineMs - Date.now()
      if (messages.length === 0 && leftMs > 0) {
        await arrival(queue, leftMs, call.signal)
        continue
      }
      for (const message of messages) deliverAgain(queue, message)
      return { Messages: asksForAttributes(call.input) ? messages : messages.map(withoutAttributes) }
    }
    return {}
  }
}

/** Makes messages visible again that were taken for a caller who had gone. */
export function giveBack(engine: Engine, { input }: AwsCall, answer: JsonObject): void {
  const queue = engine.queue(input['QueueUrl'])
  for (const message of (answer['Messages'] ?? []) as Received[]) queue.changeVisibility(message.ReceiptHandle, 0)
}

function waitSeconds(queue: Queue, input: JsonObject): number {
  return Number(input['WaitTimeSeconds'] ?? queue.attributes['ReceiveMessageWaitTimeSeconds'] ?? 0)
}

/** Resolves when messages may have arrived, the time is over, or the caller has gone. */
async function arrival(queue: Queue, waitMs: number, signal: AbortSignal): Promise<void> {
  const woken = queue.waitForMessages(waitMs / 1000)
  const waiter = queue.pollWaiters.at(-1)
  const leave = () => {
    queue.pollWaiters = queue.pollWaiters.filter((other) => other !== waiter)
    clearTimeout(waiter?.timer)
    waiter?.resolve()
  }
  signal.addEventListener('abort', leave, { once: true })
  await woken
  signal.removeEventListener('abort', leave)
}

/** fauxqs answers all message attributes to a caller who asked for none. */
const asksForAttributes = (input: JsonObject) => ((input['MessageAttributeNames'] ?? []) as string[]).length > 0

function withoutAttributes({ MessageAttributes: _, MD5OfMessageAttributes: __, ...message }: Received): Received {
  return message
}
