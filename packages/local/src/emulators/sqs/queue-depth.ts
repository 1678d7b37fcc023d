import type { Queue } from './fauxqs.ts'

export interface QueueDepth {
  name: string
  waiting: number
  inFlight: number
  delayed: number
  /** Time at which the oldest waiting or in-flight message was sent; 0 without messages. */
  oldestSentMs: number
}

export function queueDepthOf({ name, messages, inflightMessages, delayedMessages }: Queue): QueueDepth {
  const present = [...messages, ...[...inflightMessages.values()].map(({ message }) => message)]
  const oldestSentMs = present.reduce((oldest, { sentTimestamp }) => Math.min(oldest, sentTimestamp), Infinity)
  return {
    name,
    waiting: messages.length,
    inFlight: inflightMessages.size,
    delayed: delayedMessages.length,
    oldestSentMs: present.length === 0 ? 0 : oldestSentMs,
  }
}
