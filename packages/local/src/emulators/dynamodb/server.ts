/**
 * An embedded stand-in for DynamoDB: the real wire protocol, so the AWS SDK speaks to it unchanged.
 *
 * Covered: CreateTable, DeleteTable, DescribeTable, ListTables, UpdateTable (deletion protection; add or delete a
 * global index, with backfill), UpdateTimeToLive, DescribeTimeToLive; GetItem, PutItem, UpdateItem, DeleteItem, Query,
 * Scan, BatchGetItem, BatchWriteItem, TransactGetItems, TransactWriteItems; expressions, filters, projections, global
 * and local indexes, capacity, the limits on sizes and counts, the wording of most refusals.
 *
 * Kept: an answered write is on the disk (a synced batch, shared by concurrent requests). An item, its index rows, its
 * expiry and, for a transaction, all its items and its token stand in one batch, so a kill never tears them. Reads
 * show only what is on the disk. Index keys end in the item's key, so equal ones stay apart.
 *
 * Not covered: streams, PartiQL, tags, backups, exports, global tables, provisioned throughput (no call is throttled
 * but by a fault switch). `=` and `contains` compare lists and maps by identity (dynalite), so they never match. The
 * depth of an item is not limited, a repeated transaction token reports no read capacity, and signatures are not
 * verified.
 *
 * Beside the protocol, JSON over the same port: `GET /_faults`, `POST /_faults` (changes what it names),
 * `DELETE /_faults` (all off), `GET /_metrics`, `POST /_metrics/reset`; changes need the type application/json, and the
 * access key where one is set.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { Faults } from './faults.ts'
import type { FaultSettings } from './faults.ts'
import { Responder } from './http.ts'
import { Metrics } from './metrics.ts'
import { closeStore, openStore } from './store.ts'
import type { Store } from './store.ts'
import { sweep } from './sweep.ts'

const LOOPBACK = '127.0.0.1'
const SWEEP_INTERVAL_MS = 1000
/** Longer than clients keep a connection, so that none is closed under a request. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000

export interface DynamoDbOptions {
  /** Folder of the data; without one they live in memory. One process at a time may use it. */
  dataDir?: string
  /** Port on 127.0.0.1; a free one by default. */
  port?: number
  /** When given, only requests signed with this access key are answered. */
  accessKeyId?: string
  /** Fault switches that are set from the start. */
  faults?: Partial<FaultSettings>
  /** Hears of internal errors; by default they go to standard error. */
  onError?: (error: unknown) => void
}

export interface DynamoDb {
  /** The endpoint to give to the SDK. */
  url: string
  faults: Faults
  /** Finishes the running operations, then lets go of port and data. */
  close(): Promise<void>
}

/** Starts a store. Rejects when the port is taken or the data are in use. */
export async function startDynamoDb(options: DynamoDbOptions = {}): Promise<DynamoDb> {
  const faults = new Faults(options.faults)
  const store = await openStore(options.dataDir, faults, options.onError ?? console.error)
  const responder = new Responder(store, new Metrics(), options.accessKeyId)
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

  async function shut(): Promise<void> {
    server.close()
    await responder.idle()
    await sweeper.stop()
    await setImmediate()
    server.closeAllConnections()
    await closeStore(store)
  }

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shut())
  return { url: `http://${LOOPBACK}:${portOf(server)}`, faults, close }
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return address.port
}

function startSweeper(store: Store) {
  let running = Promise.resolve()
  const timer = setInterval(() => {
    running = running.then(() => sweep(store, Date.now())).catch(store.report)
  }, SWEEP_INTERVAL_MS).unref()
  return {
    stop: () => {
      clearInterval(timer)
      return running
    },
  }
}
