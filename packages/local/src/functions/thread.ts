/** The thread that runs functions, like Lambda: each module is imported once, on first use. */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { isCounted } from '@platform/core/updates/counted-error'
import { type LambdaContext, lambdaContext } from './context.ts'
import { type ThreadResponse, type SerializedError, FunctionThreadData, type ThreadRequest, ready } from './protocol.ts'

type Handler = (event: unknown, context: LambdaContext) => unknown

const { functionsDir, suffix } = FunctionThreadData.parse(workerData)
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const isHandler = (value: unknown): value is Handler => typeof value === 'function'

const load = async (functionName: string): Promise<Handler> => {
  const module: { handler?: unknown } = await import(pathToFileURL(join(functionsDir, `${functionName}${suffix}`)).href)
  if (!isHandler(module.handler)) throw new TypeError(`The function ${functionName} exports no handler.`)
  return module.handler
}

const keepAfterMs = 500
let keeping: NodeJS.Timeout | undefined

/** Writes the compile cache once the functions are loaded, since a killed thread does not. */
function keepCompiled(): void {
  clearTimeout(keeping)
  keeping = setTimeout(flushCompileCache, keepAfterMs).unref()
}

async function perform(question: ThreadRequest): Promise<unknown> {
  if (question.kind === 'ping') return undefined
  const handler = await load(question.functionName)
  if (question.kind === 'load') return keepCompiled()
  return handler(question.event, lambdaContext(question.functionName, question.requestId, question.deadlineMs))
}

const failureOf = (error: unknown): SerializedError =>
  error instanceof Error
    ? { name: error.name, message: error.message, stack: error.stack ?? '', isCounted: isCounted(error) }
    : { name: 'Error', message: String(error), stack: '', isCounted: false }

async function answer(question: ThreadRequest): Promise<ThreadResponse> {
  try {
    return { id: question.id, result: await perform(question) }
  } catch (error) {
    return { id: question.id, failure: failureOf(error) }
  }
}

async function respond(question: ThreadRequest): Promise<void> {
  const given = await answer(question)
  try {
    port?.postMessage(given)
  } catch (error) {
    // A result that cannot be cloned, such as a function, fails the invocation.
    port?.postMessage({ id: question.id, failure: failureOf(error) })
  }
}

port.on('message', (question: ThreadRequest) => void respond(question))
port.postMessage(ready)
