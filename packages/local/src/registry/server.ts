import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { drainServer, trackConnections } from '../gateway/connections.ts'
import { listenAt } from '../listening.ts'
import type { Log } from '../log.ts'
import { type RegistryResponse, errorResponse, sendResponse } from './responses.ts'
import { parsePath } from './names.ts'
import { respondToRead } from './reading.ts'
import { RegistryServerError } from './error.ts'
import { openStore, type Store } from './store.ts'
import { createUploads, type Uploads } from './uploads.ts'
import { requireWriter } from './writer.ts'
import { respondToWrite } from './writing.ts'

/** An OCI registry (distribution specification 1.1) on a loopback port. */
export interface Registry {
  /** `127.0.0.1:<port>`, the prefix of image references. */
  host: string
  /** Accepts no more requests, and waits for running requests up to the limit. */
  close: (limitMs: number) => Promise<void>
}

export interface RegistryOptions {
  /** Folder that no other process may use. */
  folder: string
  /** 0 selects a free port. */
  port: number
  /** Password of the user `platform`, who may write. */
  password: string
  /** Maximum blob size; 1 GiB by default. */
  maxBlobBytes?: number
  log: Log
}

interface Context {
  store: Store
  uploads: Uploads
  password: string
  log: Log
}

const maxConnections = 1000
/** Other values of `Host` are rejected, because the host name of a web page may resolve to this machine. */
const loopbackHost = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i

/** Rejects if the port cannot be bound. */
export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { folder, port, password, maxBlobBytes = 1024 ** 3, log } = options
  const store = await openStore(folder)
  const context = { store, uploads: createUploads(store.disk.draft, maxBlobBytes), password, log }
  const server = createServer({ headersTimeout: 10_000, keepAliveTimeout: 65_000 })
  server.maxConnections = maxConnections
  const connections = trackConnections(server)
  server.on('request', (request, response) => {
    connections.begin({ request, response })
    void respond(context, request, response)
  })
  const address = await listenAt(server, '127.0.0.1', port)
  return { host: `127.0.0.1:${address.port}`, close: (limitMs) => drainServer(server, connections, limitMs) }
}

async function respond(context: Context, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await sendResponse(
      request,
      response,
      await handle(context, request).catch((error: unknown) => toErrorResponse(context, error)),
    )
  } catch {
    // After a disconnect or a read error, a partial response must not look complete.
    response.destroy()
  }
}

async function handle({ store, uploads, password }: Context, request: IncomingMessage): Promise<RegistryResponse> {
  const { method = '', headers } = request
  if (!loopbackHost.test(headers.host ?? ''))
    throw new RegistryServerError('DENIED', 'The registry is available on loopback only.')
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  const target = parsePath(path)
  if (target === undefined) throw new RegistryServerError('NAME_UNKNOWN', 'The path or the name is invalid.')
  const parameters = new URLSearchParams(query)
  const isReading = (method === 'GET' || method === 'HEAD') && target.kind !== 'upload'
  // Clients request the base path to learn whether the registry requires a password.
  if (!isReading || target.kind === 'base') requireWriter(request, password)
  return isReading
    ? respondToRead(store, { target, path, query: parameters, range: headers.range })
    : respondToWrite(store, uploads, { target, query: parameters, request })
}

function toErrorResponse({ log }: Context, error: unknown): RegistryResponse {
  if (error instanceof RegistryServerError) return errorResponse(error)
  log('the registry failed', { error })
  return errorResponse(new RegistryServerError('UNKNOWN', 'The registry failed.'))
}
