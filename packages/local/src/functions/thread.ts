/** Entry point of the threads that run functions. Like Lambda, imports each function once, on first use. */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { setAwsTransport } from '@platform/core/aws/sdk'
import { isCounted } from '@platform/core/updates/counted-error'
import { callOver, transportOver } from '../emulators/port.ts'
import { type LambdaContext, lambdaContext } from './context.ts'
import {
  type ThreadResponse,
  type SerializedError,
  FunctionThreadData,
  type ThreadRequest,
  monotonicMs,
  readyMessage,
} from './protocol.ts'

type Handler = (event: unknown, context: LambdaContext) => unknown

const { functionsDir, suffix, emulatorPort } = FunctionThreadData.parse(workerData)
if (emulatorPort !== undefined) setAwsTransport(transportOver(callOver(emulatorPort)))
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const isHandler = (value: unknown): value is Handler => typeof value === 'function'

const load = async (functionName: string): Promise<Handler> => {
  const module: { handler?: unknown } = await import(pathToFileURL(join(functionsDir, `${functionName}${suffix}`)).href)
  if (!isHandler(module.handler)) throw new TypeError(`The function ${functionName} exports no handler.`)
  return module.handler
}

const flushDelayMs = 500
let flushTimer: NodeJS.Timeout | undefined

/** Writes the compile cache once the functions are loaded, because a killed thread does not write it. */
function scheduleCacheFlush(): void {
  clearTimeout(flushTimer)
  flushTimer = setTimeout(flushCompileCache, flushDelayMs).unref()
}

async function perform(request: ThreadRequest): Promise<unknown> {
  if (request.kind === 'ping') return undefined
  const handler = await load(request.functionName)
  if (request.kind === 'load') return scheduleCacheFlush()
  return handler(
    request.event,
    lambdaContext(request.functionName, request.requestId, request.deadlineMs - monotonicMs()),
  )
}

const serialize = (error: unknown): SerializedError =>
  error instanceof Error
    ? { name: error.name, message: error.message, stack: error.stack ?? '', isCounted: isCounted(error) }
    : { name: 'Error', message: String(error), stack: '', isCounted: false }

async function execute(request: ThreadRequest): Promise<ThreadResponse> {
  try {
    return { id: request.id, result: await perform(request) }
  } catch (error) {
    return { id: request.id, failure: serialize(error) }
  }
}

async function respond(request: ThreadRequest): Promise<void> {
  const response = await execute(request)
  try {
    port?.postMessage(response)
  } catch (error) {
    // The result cannot be cloned, for example because it contains a function.
    port?.postMessage({ id: request.id, failure: serialize(error) })
  }
}

port.on('message', (request: ThreadRequest) => void respond(request))
port.postMessage(readyMessage)
