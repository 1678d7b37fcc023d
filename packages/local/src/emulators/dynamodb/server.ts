/**
 * An embedded emulator of DynamoDB with its wire protocol, so that the AWS SDK works unchanged.
 *
 * Supported: CreateTable, DeleteTable, DescribeTable, ListTables, UpdateTimeToLive, DescribeTimeToLive; GetItem,
 * PutItem, UpdateItem, DeleteItem, Query, Scan, BatchGetItem, BatchWriteItem, TransactWriteItems; expressions, filters,
 * projections, global and local indexes, capacity, the limits on sizes and counts, the wording of most errors.
 *
 * Durability with `dataDir`: an acknowledged write is on the disk (in a synced batch). An item, its index rows, its
 * expiry and, for a transaction, all its items and its token are in one batch, so a crash never splits them.
 * Reads return only records on the disk. Index keys end in the item's key, so items with equal index keys are distinct.
 *
 * Not supported: UpdateTable, TransactGetItems, streams, PartiQL, tags, backups, exports, global tables, provisioned
 * throughput (no call is throttled). `=` and `contains` compare lists and maps by identity (dynalite), so they never
 * match. The depth of an item is not limited, a repeated transaction token reports no read capacity, and signatures are
 * not verified.
 *
 * `GET /_metrics` returns the calls and capacity by operation.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { NoResponse } from '../http/error.ts'
import type { DynamoDbHooks } from '../hooks.ts'
import type { Call } from '../port.ts'
import { Responder } from './http.ts'
import { Metrics } from './metrics.ts'
import { closeStore, openStore } from './store.ts'
import type { Store } from './store.ts'
import { sweep } from './sweep.ts'

const LOOPBACK = '127.0.0.1'
const SWEEP_INTERVAL_MS = 1000
const KEEP_ALIVE_TIMEOUT_MS = 65_000

export interface DynamoDbOptions {
  /** Folder of the data, for one process at a time. Without it, the data is in memory only. */
  dataDir?: string
  /** Port on 127.0.0.1; a free port by default. */
  port?: number
  /** If given, HTTP requests must name this access key in their signature, which is not verified. */
  accessKeyId?: string
  hooks?: DynamoDbHooks | undefined
  /** Called for internal errors; writes to standard error by default. */
  onError?: (error: unknown) => void
}

export interface DynamoDb {
  url: string
  /** Performs a call without HTTP. */
  call: Call
  /** Completes running operations, then releases the port and the data. */
  close(): Promise<void>
}

/** Rejects if the port or the data folder is in use. */
export async function startDynamoDb(options: DynamoDbOptions = {}): Promise<DynamoDb> {
  const { hooks = {} } = options
  const store = await openStore(options.dataDir, hooks, options.onError ?? console.error)
  const metrics = new Metrics()
  const control = {
    'GET /_metrics': () => ({ operations: metrics.read(), commits: store.commits.batchCount }),
    ...hooks.control,
  }
  const responder = new Responder(store, metrics, control, options.accessKeyId)
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }, (request, response) => {
    void responder.respond(request, response)
  })
  try {
    server.listen(options.port ?? 0, LOOPBACK)
    await once(server, 'listening')
  } catch (error) {
    await closeStore(store)
    throw error
  }
  const sweeper = startSweeper(store)

  async function shutDown(): Promise<void> {
    server.close()
    await responder.untilIdle()
    await sweeper.stop()
    await setImmediate()
    server.closeAllConnections()
    await closeStore(store)
  }

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shutDown())
  const call: Call = async (target, body) => {
    if (closing !== undefined) throw new NoResponse()
    return responder.call(target, body)
  }
  return { url: `http://${LOOPBACK}:${portOf(server)}`, call, close }
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return address.port
}

function startSweeper(store: Store) {
  let lastSweep = Promise.resolve()
  const timer = setInterval(() => {
    lastSweep = lastSweep.then(() => sweep(store, Date.now())).catch(store.report)
  }, SWEEP_INTERVAL_MS).unref()
  return {
    stop: () => {
      clearInterval(timer)
      return lastSweep
    },
  }
}
