import { type AwsServer, serveAws } from '../http/server.ts'
import type { AwsCall } from '../http/service.ts'
import type { SqsHooks } from '../hooks.ts'
import { openEngine } from './engine.ts'
import { recordGroups } from './fair-order.ts'
import { createReceiver, releaseMessages } from './receive.ts'
import { performChecked } from './validation.ts'

export interface SqsOptions {
  /** Folder of the queues. Without it, they are in memory only. */
  dataDir?: string
  /** 0, the default, selects a free port. */
  port?: number
  hooks?: SqsHooks | undefined
  /** If given, HTTP requests must name this access key in their signature, which is not verified. */
  accessKeyId?: string
}

/** Serves standard queues. `GET /_metrics` counts calls by action, and `GET /_queues` counts messages by queue. */
export async function startSqs(options: SqsOptions = {}): Promise<AwsServer> {
  const engine = await openEngine(options.dataDir)
  const { intercept, control } = options.hooks ?? {}
  const receive = createReceiver(engine)
  const callsByAction = new Map<string, number>()

  const perform = async (call: AwsCall) => {
    const output = await performChecked(call, call.action === 'ReceiveMessage' ? receive : engine.perform)
    const queue = call.action.startsWith('SendMessage') ? engine.find(call.input['QueueUrl']) : undefined
    if (queue !== undefined) recordGroups(queue, call.input, output)
    return output
  }
  return serveAws(
    {
      target: 'AmazonSQS',
      contentType: 'application/x-amz-json-1.0',
      errorNamespace: 'com.amazonaws.sqs#',
      accessKeyId: options.accessKeyId,
      respond: (call) => {
        callsByAction.set(call.action, (callsByAction.get(call.action) ?? 0) + 1)
        const run = () => perform(call)
        return intercept?.(call, run, engine.find(call.input['QueueUrl'])) ?? run()
      },
      onUndelivered: (call, output) => call.action === 'ReceiveMessage' && releaseMessages(engine, call, output),
      onClose: engine.close,
      control: {
        'GET /_queues': () => ({ queues: engine.depths() }),
        'GET /_metrics': () => Object.fromEntries(callsByAction),
        ...control,
      },
    },
    options.port,
  )
}
