import type { SqsHooks } from '@platform/local/emulators/hooks'
import { AwsServiceError, NoResponse } from '@platform/local/emulators/http/error'
import { objectsIn } from '@platform/local/emulators/http/request'
import { createSwitches, faultRoutes, type FaultSwitches } from './fault-settings.ts'

/** Faults that occur with SQS in the cloud. Rates are shares, from 0 to 1. */
export interface QueueFaults {
  seed: number
  /** Received messages that are delivered once more, even if the first delivery is deleted. */
  duplicateRate: number
  /** Receive calls before which the waiting messages are shuffled. */
  reorderRate: number
  /** Send calls that store the messages, but close the connection before the response. */
  lostAcknowledgementRate: number
  /** Calls that are rejected with `RequestThrottled`. */
  throttleRate: number
}

const noFaults: QueueFaults = { seed: 1, duplicateRate: 0, reorderRate: 0, lostAcknowledgementRate: 0, throttleRate: 0 }

export function createQueueFaults(): FaultSwitches<QueueFaults> & { hooks: SqsHooks } {
  const faults = createSwitches(noFaults)
  const duplicates = new WeakSet<object>()
  const occurs = (rate: Exclude<keyof QueueFaults, 'seed'>) =>
    faults.read()[rate] > 0 && faults.random() < faults.read()[rate]

  const shuffle = (items: unknown[]) => {
    for (let index = items.length - 1; index > 0; index--) {
      const otherIndex = Math.floor(faults.random() * (index + 1))
      ;[items[index], items[otherIndex]] = [items[otherIndex], items[index]]
    }
  }

  const intercept: SqsHooks['intercept'] = async ({ action }, run, queue) => {
    if (occurs('throttleRate')) throw new AwsServiceError('RequestThrottled', 'The request is throttled.')
    if (action === 'ReceiveMessage' && queue && occurs('reorderRate')) shuffle(queue.messages)
    const output = await run()
    if (action.startsWith('SendMessage') && occurs('lostAcknowledgementRate')) throw new NoResponse()
    for (const { ReceiptHandle } of objectsIn(output['Messages'])) {
      const original = queue?.inflightMessages.get(String(ReceiptHandle))?.message
      if (original === undefined || duplicates.has(original) || !occurs('duplicateRate')) continue
      const duplicate = { ...original }
      duplicates.add(duplicate)
      queue?.enqueue(duplicate)
    }
    return output
  }
  return { ...faults, hooks: { intercept, control: faultRoutes(faults) } }
}
