import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** An event that Lambda delivers to this instance. */
export interface Invocation {
  id: string
  event: unknown
}

/**
 * Client of the Lambda Runtime API at `host:port`. Calls have no timeout, because Lambda may freeze an instance for
 * hours.
 */
export class RuntimeApi {
  readonly #base: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor(address: string) {
    this.#base = `http://${address}/2018-06-01/runtime`
  }

  async next(): Promise<Invocation> {
    const { headers, body } = await this.#call('GET', '/invocation/next')
    return { id: String(headers['lambda-runtime-aws-request-id']), event: JSON.parse(body) }
  }

  async respond(id: string, result: object): Promise<void> {
    await this.#call('POST', `/invocation/${id}/response`, result)
  }

  async fail(id: string, type: string, message: string): Promise<void> {
    await this.#call('POST', `/invocation/${id}/error`, errorOf(type, message), type)
  }

  /** Reports that this instance could not be initialised. */
  async failInit(type: string, message: string): Promise<void> {
    await this.#call('POST', '/init/error', errorOf(type, message), type)
  }

  async #call(method: string, path: string, content?: object, errorType?: string) {
    const headers = {
      'content-type': 'application/json',
      ...(errorType !== undefined && { 'lambda-runtime-function-error-type': errorType }),
    }
    return new Promise<{ headers: IncomingHttpHeaders; body: string }>((resolve, reject) => {
      const outgoing = request(`${this.#base}${path}`, { method, headers, agent: this.#agent }, (response) => {
        text(response).then((body) => resolve({ headers: response.headers, body }), reject)
      })
      outgoing.on('error', reject).end(content && JSON.stringify(content))
    })
  }
}

const errorOf = (errorType: string, errorMessage: string) => ({ errorType, errorMessage, stackTrace: [] })
