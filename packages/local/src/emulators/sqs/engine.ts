import { AwsServiceError } from '../http/error.ts'
import type { JsonObject } from '../http/request.ts'
import type { AwsCall } from '../http/service.ts'
import { queueDepthOf, type QueueDepth } from './queue-depth.ts'
import { loadFauxqs, type Queue } from './fauxqs.ts'
import { openJournal } from './journal.ts'

/** The queues: fauxqs, in memory or with a journal on disk. */
export interface Engine {
  /** Performs one action; its changes are durable together before it resolves. */
  perform: (call: AwsCall) => Promise<JsonObject>
  /** The queue of a URL, with any host and port. */
  find: (url: unknown) => Queue | undefined
  /** The number of messages in each queue. */
  depths: () => QueueDepth[]
  close: () => void
}

/** Opens the queues of a folder; without one they are in memory only. */
export async function openEngine(dataDir: string | undefined): Promise<Engine> {
  const { Store, Persistence, SqsError, actions } = await loadFauxqs()
  const store = new Store()
  store.host = ''
  const journal = dataDir === undefined ? undefined : openJournal(Persistence, dataDir)
  journal?.restore(store)

  const perform = async ({ action: name, input, host, authorization }: AwsCall): Promise<JsonObject> => {
    const action = actions.get(name)
    if (action === undefined) throw new AwsServiceError('UnsupportedOperation', `${name} is not supported here.`)
    // Every action makes its changes before its first wait, so one transaction can include them.
    const work = () => action(input, store, { headers: { host, authorization } })
    try {
      return withCurrentHost(await (journal === undefined ? work() : journal.atomically(work)), host)
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

/** A stored queue URL has the port of an earlier start. */
function withCurrentHost(output: JsonObject, host: string): JsonObject {
  const here = (url: string) => `http://${host}${new URL(url).pathname}`
  if (typeof output['QueueUrl'] === 'string') return { ...output, QueueUrl: here(output['QueueUrl']) }
  if (Array.isArray(output['QueueUrls'])) return { ...output, QueueUrls: output['QueueUrls'].map(here) }
  return output
}
