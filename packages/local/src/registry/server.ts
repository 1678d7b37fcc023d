import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { drainServer, trackConnections } from '../gateway/connections.ts'
import { listenAt } from '../listening.ts'
import type { Log } from '../log.ts'
import { type RegistryAnswer, refusalAnswer, sendAnswer } from './responses.ts'
import { parsePath } from './names.ts'
import { answerReading } from './reading.ts'
import { RegistryServerError } from './error.ts'
import { openStore, type Store } from './store.ts'
import { createUploads, type Uploads } from './uploads.ts'
import { requireWriter } from './writer.ts'
import { answerWriting } from './writing.ts'

/** An OCI registry (distribution specification 1.1) on a loopback port. */
export interface Registry {
  /** `127.0.0.1:<port>`: how references to its images begin. */
  host: string
  /** Takes no more requests, and lets those under way end for so long. */
  close: (limitMs: number) => Promise<void>
}

export interface RegistryOptions {
  /** Nobody else may write there. */
  folder: string
  /** 0 takes a free one. */
  port: number
  /** Of the one user who may write. */
  password: string
  /** Size of the largest blob: 1 GiB, which is more than a layer of a module should have. */
  maximumBlobBytes?: number
  log: Log
}

interface Context {
  store: Store
  uploads: Uploads
  password: string
  log: Log
}

const maximumConnections = 1000
/** A name that a web page made resolve to this machine would open the registry to that page. */
const loopbackHost = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i

/** Starts a registry on what is in its folder. Rejects when the port cannot be bound. */
export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { folder, port, password, maximumBlobBytes = 1024 ** 3, log } = options
  const store = await openStore(folder)
  const context = { store, uploads: createUploads(store.disk.draft, maximumBlobBytes), password, log }
  const server = createServer({ headersTimeout: 10_000, keepAliveTimeout: 65_000 })
  server.maxConnections = maximumConnections
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
    await sendAnswer(
      request,
      response,
      await answer(context, request).catch((error: unknown) => refused(context, error)),
    )
  } catch {
    // The caller hung up, or a file went away: half an answer must not look like a whole one.
    response.destroy()
  }
}

async function answer({ store, uploads, password }: Context, request: IncomingMessage): Promise<RegistryAnswer> {
  const { method = '', headers } = request
  if (!loopbackHost.test(headers.host ?? ''))
    throw new RegistryServerError('DENIED', 'The registry answers on loopback only.')
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  const target = parsePath(path)
  if (target === undefined)
    throw new RegistryServerError('NAME_UNKNOWN', 'There is no such path, or the name is not valid.')
  const parameters = new URLSearchParams(query)
  const isReading = (method === 'GET' || method === 'HEAD') && target.kind !== 'upload'
  // Clients ask the base path whether the registry wants to know them, and send no password later where it does not.
  if (!isReading || target.kind === 'base') requireWriter(request, password)
  return isReading
    ? answerReading(store, { target, path, query: parameters, range: headers.range })
    : answerWriting(store, uploads, { target, query: parameters, request })
}

function refused({ log }: Context, error: unknown): RegistryAnswer {
  if (error instanceof RegistryServerError) return refusalAnswer(error)
  log('the registry failed', { error })
  return refusalAnswer(new RegistryServerError('UNKNOWN', 'The registry failed.'))
}
