import type { Queue } from './fauxqs.ts'

/** How much lies in a queue, and since when. */
export interface QueueDepth {
  name: string
  waiting: number
  inFlight: number
  delayed: number
  /** When the oldest message was sent that waits or is being worked on; 0 where there is none. */
  oldestSentMs: number
}

/** Counts the messages of a queue by what becomes of them. */
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
