import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface InvocationResult {
  errorType: string
  errorMessage: string
  header: string | undefined
}

type Outcome = { result: any } | { error: InvocationResult }

interface Invocation {
  event: unknown
  settle: (outcome: Outcome) => void
}

/** The Lambda Runtime API for one instance, over HTTP. Delivers one event at a time. */
export class LambdaRuntimeApi implements AsyncDisposable {
  readonly #server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing))
  readonly #queue: Invocation[] = []
  readonly #running = new Map<string, Invocation>()
  #poll: ServerResponse | undefined
  #count = 0
  readonly #initError = Promise.withResolvers<InvocationResult>()
  /** How often the instance requested an event. */
  requestedEvents = 0

  static async start(): Promise<LambdaRuntimeApi> {
    const api = new LambdaRuntimeApi()
    api.#server.listen(0, '127.0.0.1')
    await once(api.#server, 'listening')
    return api
  }

  /** The value of `AWS_LAMBDA_RUNTIME_API`. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get initError(): Promise<InvocationResult> {
    return this.#initError.promise
  }

  /** Delivers an event and returns the result. Rejects like the AWS SDK if the function fails. */
  async invoke(event: unknown): Promise<any> {
    const outcome = await new Promise<Outcome>((settle) => {
      this.#queue.push({ event, settle })
      this.#deliver()
    })
    if ('error' in outcome) throw Object.assign(new Error(outcome.error.errorMessage), outcome.error)
    return outcome.result
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const [, id = '', part = ''] =
      /^\/2018-06-01\/runtime\/(?:invocation\/)?([^/]+)(?:\/(\w+))?$/.exec(incoming.url ?? '') ?? []
    if (id === 'next') {
      this.requestedEvents += 1
      this.#poll = outgoing
      return this.#deliver()
    }
    const body = JSON.parse(await text(incoming))
    const error = { ...body, header: incoming.headers['lambda-runtime-function-error-type'] }
    if (id === 'init') this.#initError.resolve(error)
    else this.#running.get(id)?.settle(part === 'response' ? { result: body } : { error })
    outgoing.writeHead(202).end('{"status":"OK"}')
  }

  #deliver(): void {
    const outgoing = this.#poll
    const invocation = outgoing && this.#queue.shift()
    if (!invocation) return
    this.#poll = undefined
    const id = `request-${(this.#count += 1)}`
    this.#running.set(id, invocation)
    outgoing.setHeader('lambda-runtime-aws-request-id', id)
    outgoing.end(JSON.stringify(invocation.event))
  }
}
