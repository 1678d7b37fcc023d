import { type JsonObject, objectsIn } from '../http/request.ts'
import type { Message, Queue } from './fauxqs.ts'

/**
 * Fair queues deliver messages of a group with few messages in flight first. fauxqs supports groups only for FIFO
 * queues, so this file records the groups.
 */

/** Records the groups of the messages of a send call, except messages that are already received. */
export function recordGroups(
  { messages, delayedMessages }: Pick<Queue, 'messages' | 'delayedMessages'>,
  input: JsonObject,
  output: JsonObject,
): void {
  const groups = new Map(objectsIn(input['Entries']).map((entry) => [entry['Id'], entry['MessageGroupId']]))
  const entries = [
    [output['MessageId'], input['MessageGroupId']],
    ...objectsIn(output['Successful']).map(({ Id, MessageId }) => [MessageId, groups.get(Id)]),
  ]
  for (const [messageId, group] of entries) {
    if (typeof group !== 'string') continue
    const isSent = (each: Message) => each.messageId === messageId
    const message = delayedMessages.findLast(isSent) ?? messages.findLast(isSent)
    if (message) message.messageGroupId = group
  }
}

const groupOf = ({ messageGroupId = '' }: Message): string => messageGroupId

/**
 * Moves waiting messages of groups with few messages in flight to the front, and lets groups take turns. Keeps the
 * order within a group.
 */
export function orderFairly({ messages, inflightMessages }: Pick<Queue, 'messages' | 'inflightMessages'>): void {
  const [firstMessage] = messages
  if (firstMessage === undefined || messages.every((message) => groupOf(message) === groupOf(firstMessage))) return
  const positions = new Map<string, number>()
  const nextPosition = (message: Message): number => {
    const position = positions.get(groupOf(message)) ?? 0
    positions.set(groupOf(message), position + 1)
    return position
  }
  for (const { message } of inflightMessages.values()) nextPosition(message)
  const order = new Map(messages.map((message) => [message, nextPosition(message)]))
  messages.sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0))
}
