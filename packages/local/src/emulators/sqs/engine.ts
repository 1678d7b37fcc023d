import { AwsServiceError } from '../http/error.ts'
import type { JsonObject } from '../http/request.ts'
import type { AwsCall } from '../http/service.ts'
import { queueDepthOf, type QueueDepth } from './queue-depth.ts'
import { loadFauxqs, type Queue } from './fauxqs.ts'
import { openJournal } from './journal.ts'

/** If a power failure undoes these actions, messages are delivered again, as SQS may do at any time. */
const repeatableActions = new Set([
  'ReceiveMessage',
  'DeleteMessage',
  'DeleteMessageBatch',
  'ChangeMessageVisibility',
  'ChangeMessageVisibilityBatch',
])

export interface Engine {
  /**
   * Performs one action. When the call resolves, its stored changes survive a crash of the process and, except for
   * actions in `repeatableActions`, a power failure.
   */
  perform: (call: AwsCall) => Promise<JsonObject>
  /** Ignores the host and port of the URL. */
  find: (url: unknown) => Queue | undefined
  depths: () => QueueDepth[]
  close: () => void
}

/** Without a folder, the queues are in memory only. */
export async function openEngine(dataDir: string | undefined): Promise<Engine> {
  const { Store, Persistence, SqsError, actions } = await loadFauxqs()
  const store = new Store()
  store.host = ''
  const journal = dataDir === undefined ? undefined : openJournal(Persistence, dataDir)
  journal?.restore(store)

  const perform = async ({ action: name, input, host, authorization }: AwsCall): Promise<JsonObject> => {
    const action = actions.get(name)
    if (action === undefined) throw new AwsServiceError('UnsupportedOperation', `${name} is not supported here.`)
    // Every fauxqs action makes its changes before its first await, so one transaction can include them all.
    const work = () => action(input, store, { headers: { host, authorization } })
    try {
      return withCurrentHost(
        await (journal === undefined ? work() : journal.atomically(work, !repeatableActions.has(name))),
        host,
      )
    } catch (error) {
      throw error instanceof SqsError ? new AwsServiceError(error.code, error.message, error.statusCode) : error
    }
  }

  return {
    perform,
    find: (url) => (typeof url === 'string' ? store.getQueue(url) : undefined),
    depths: () => [...store.allQueues()].map(queueDepthOf),
    close: () => {
      store.shutdown()
      journal?.close()
    },
  }
}

/** A stored queue URL may have the port of an earlier start. */
function withCurrentHost(output: JsonObject, host: string): JsonObject {
  const toCurrentHost = (url: string) => `http://${host}${new URL(url).pathname}`
  if (typeof output['QueueUrl'] === 'string') return { ...output, QueueUrl: toCurrentHost(output['QueueUrl']) }
  if (Array.isArray(output['QueueUrls'])) return { ...output, QueueUrls: output['QueueUrls'].map(toCurrentHost) }
  return output
}
