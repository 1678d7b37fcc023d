import { type AttributeValue, BatchGetItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand } from '@aws-sdk/client-sqs'
import { BatchGetCommand, TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'

/** What every read of several items finds, as the store keeps it. */
export type StubbedItems = Record<string, AttributeValue>[]

/**
 * From here on the SDK of this process answers at once what it is told here: nothing is signed, sent, or read of a wire.
 * Whatever else is asked, such as the keys of tokens, still goes to the store.
 */
export function stubStore(table: string, items: StubbedItems): void {
  const answers = [
    [BatchGetItemCommand, { Responses: { [table]: items } }],
    [BatchGetCommand, { Responses: { [table]: items.map((item) => unmarshall(item)) } }],
    [TransactWriteItemsCommand, {}],
    [TransactWriteCommand, {}],
    [SendMessageCommand, {}],
  ] as const
  for (const [command, output] of answers) {
    const answer = async () => ({ output: { $metadata: {}, ...output } })
    Object.assign(command.prototype, { resolveMiddleware: () => answer })
  }
}
