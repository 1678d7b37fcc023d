import { AwsFault, ConnectionDropped } from '../http/error.ts'
import { type AwsServer, serveAws } from '../http/server.ts'
import type { AwsCall } from '../http/service.ts'
import { openEngine } from './engine.ts'
import { createFaults, type Faults, type FaultSwitches, parseFaults } from './faults.ts'
import { noteGroups } from './fair-order.ts'
import { createReceiver, giveBack } from './receive.ts'
import { performChecked } from './refusals.ts'

/** Settings of the SQS stand-in. */
export interface SqsOptions {
  /** Folder of the queues; without it they live in memory. */
  dataDir?: string
  /** 0, the default, takes a free port. */
  port?: number
  faults?: Partial<Faults>
  /** When given, only requests signed with this access key are answered. */
  accessKeyId?: string
}

/** A running SQS stand-in. */
export interface Sqs extends AwsServer {
  /** Also over HTTP: `GET /_faults`, and `POST /_faults` for who has the access key. */
  faults: FaultSwitches
}

/**
 * Serves SQS on a loopback port: standard queues, with faults on demand, `GET /_metrics` counting calls by action, and
 * `GET /_queues` counting messages.
 */
export async function startSqs(options: SqsOptions = {}): Promise<Sqs> {
  const engine = await openEngine(options.dataDir)
  const faults = createFaults(options.faults)
  const receive = createReceiver(engine, faults)
  const callsByAction = new Map<string, number>()

  const answer = async (call: AwsCall) => {
    callsByAction.set(call.action, (callsByAction.get(call.action) ?? 0) + 1)
    if (faults.strikes('throttleRate')) throw new AwsFault('RequestThrottled', 'The request is throttled.')
    const output = await performChecked(call, call.action === 'ReceiveMessage' ? receive : engine.perform)
    const isSend = call.action.startsWith('SendMessage')
    const queue = isSend ? engine.find(call.input['QueueUrl']) : undefined
    if (queue !== undefined) noteGroups(queue, call.input, output)
    if (isSend && faults.strikes('lostAcknowledgementRate')) throw new ConnectionDropped()
    return output
  }
  const server = await serveAws(
    {
      target: 'AmazonSQS',
      contentType: 'application/x-amz-json-1.0',
      errorNamespace: 'com.amazonaws.sqs#',
      accessKeyId: options.accessKeyId,
      answer,
      undelivered: (call, output) => call.action === 'ReceiveMessage' && giveBack(engine, call, output),
      release: engine.close,
      control: {
        'GET /_queues': () => ({ queues: engine.depths() }),
        'GET /_metrics': () => Object.fromEntries(callsByAction),
        'POST /_metrics/reset': () => {
          callsByAction.clear()
          return {}
        },
        'GET /_faults': () => ({ ...faults.current() }),
        'POST /_faults': (input) => {
          faults.set(parseFaults(input))
          return { ...faults.current() }
        },
      },
    },
    options.port,
  )
  return { ...server, faults }
}
