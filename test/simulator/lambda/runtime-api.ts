import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen, type ListeningServer } from '../../support/http-server.ts'

export interface Work {
  id: string
  payload: Buffer
  deadlineMs: number
  functionArn: string
}

export interface Outcome {
  payload: Buffer
  isError: boolean
}

export const maxPayloadBytes = 6 * 1024 * 1024

export const failedOutcome = (errorType: string, errorMessage: string): Outcome => ({
  isError: true,
  payload: Buffer.from(JSON.stringify({ errorType, errorMessage })),
})

interface Task {
  work: Work
  isSent: boolean
  outcome?: Outcome
  settle: (outcome: Outcome) => void
}

/** The Runtime API of one program, with one task at a time. `respond`, `fail` and `failInit` return the HTTP status. */
export class Runtime {
  readonly #freeze: () => void
  readonly #thaw: () => void
  readonly #ready = Promise.withResolvers<boolean>()
  #send: ((work: Work) => void) | undefined
  #task: Task | undefined
  #initError: Outcome | undefined
  #end: ((id: string) => Outcome) | undefined

  constructor(freeze: () => void, thaw: () => void) {
    this.#freeze = freeze
    this.#thaw = thaw
  }

  get isIdle(): boolean {
    return this.#send !== undefined && this.#task === undefined
  }

  get whenReady(): Promise<boolean> {
    return this.#ready.promise
  }

  /**
   * Resolves when the program has responded and requests the next task, when its init fails, or when the process ends.
   */
  run(work: Work): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.#task = { work, isSent: false, settle: resolve }
    const outcome = this.#initError ?? this.#end?.(work.id)
    if (outcome === undefined) this.#sendTask()
    else resolve(outcome)
    return promise
  }

  end(outcomeOf: (id: string) => Outcome): void {
    this.#end = outcomeOf
    this.#send = undefined
    this.#ready.resolve(false)
    const task = this.#task
    task?.settle(task.outcome ?? this.#initError ?? outcomeOf(task.work.id))
  }

  next(send: (work: Work) => void): void {
    this.#send = send
    this.#ready.resolve(true)
    const task = this.#task
    if (task?.outcome !== undefined) this.#task = undefined
    if (this.#task === undefined) this.#freeze()
    else this.#sendTask()
    if (task?.outcome !== undefined) task.settle(task.outcome)
  }

  respond(id: string, payload: Buffer): number {
    if (payload.length <= maxPayloadBytes) return this.#conclude(id, { payload, isError: false }, 202)
    const message = `The response is larger than ${maxPayloadBytes} bytes.`
    return this.#conclude(id, failedOutcome('Function.ResponseSizeTooLarge', message), 413)
  }

  fail(id: string, payload: Buffer): number {
    return this.#conclude(id, { payload, isError: true }, 202)
  }

  failInit(payload: Buffer): number {
    if (this.#send !== undefined) return 403
    this.#initError = { payload, isError: true }
    this.#ready.resolve(false)
    this.#task?.settle(this.#initError)
    return 202
  }

  #conclude(id: string, outcome: Outcome, status: number): number {
    const task = this.#task
    if (task?.work.id !== id || task.outcome !== undefined) return 400
    task.outcome = outcome
    return status
  }

  #sendTask(): void {
    const task = this.#task
    if (this.#send === undefined || task === undefined || task.isSent) return
    task.isSent = true
    this.#thaw()
    this.#send(task.work)
  }
}

const base = '/2018-06-01/runtime'

/** Serves the Runtime API without time limits, because programs wait for work. */
export function serveRuntimeApi(runtime: Runtime): Promise<ListeningServer> {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 })
  // A killed program breaks its connection.
  server.on('request', (request, response) => void handle(runtime, request, response).catch(() => response.destroy()))
  return listen(server)
}

async function handle(runtime: Runtime, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '' } = request
  const payload = await buffer(request)
  if (method === 'GET' && url === `${base}/invocation/next`) return runtime.next((work) => sendWork(response, work))
  const status = method === 'POST' ? accept(runtime, url, payload) : 404
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ status: status === 202 ? 'OK' : 'Rejected' }))
}

function accept(runtime: Runtime, url: string, payload: Buffer): number {
  if (url === `${base}/init/error`) return runtime.failInit(payload)
  const [, id = '', kind] = /^\/invocation\/([\w-]+)\/(response|error)$/.exec(url.slice(base.length)) ?? []
  if (kind === undefined) return 404
  return kind === 'response' ? runtime.respond(id, payload) : runtime.fail(id, payload)
}

function sendWork(response: ServerResponse, { id, payload, deadlineMs, functionArn }: Work): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': payload.length,
    'lambda-runtime-aws-request-id': id,
    'lambda-runtime-deadline-ms': String(deadlineMs),
    'lambda-runtime-invoked-function-arn': functionArn,
  })
  response.end(payload)
}
