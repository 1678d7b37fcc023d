import { DeleteMessageBatchCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'
import type { CallOperation } from '@platform/local/emulators/port'

/** Lets a poller call SQS over HTTP. */
export const sqsCalls =
  (client: SQSClient): CallOperation =>
  (target, input: any, abortSignal) => {
    const options = abortSignal && { abortSignal }
    return target === 'AmazonSQS.ReceiveMessage'
      ? client.send(new ReceiveMessageCommand(input), options)
      : client.send(new DeleteMessageBatchCommand(input), options)
  }
