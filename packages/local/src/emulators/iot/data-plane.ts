import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listenAt } from '../../listening.ts'
import { AwsServiceError } from '../http/error.ts'
import { requireLoopbackHost, requireSigner } from '../http/request.ts'
import type { Broker } from './broker.ts'

export interface DataPlane {
  /** `http://127.0.0.1:<port>`: the `endpoint` of an SDK client. */
  url: string
  close: () => Promise<void>
}

/** Serves `POST /topics/{topic}` of the AWS IoT data plane on loopback. */
export async function serveDataPlane(broker: Pick<Broker, 'publish'>, accessKeyId: string): Promise<DataPlane> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      requireLoopbackHost(request)
      requireSigner(request, accessKeyId)
      const payload = await buffer(request)
      broker.publish(topicOf(request), payload)
      send(response, 200, { message: 'OK' })
    } catch (error) {
      const { code, status, message } =
        error instanceof AwsServiceError ? error : new AwsServiceError('InternalFailureException', String(error), 500)
      response.setHeader('x-amzn-errortype', code)
      send(response, status, { message })
    }
  }
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => void respond(request, response))
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function topicOf({ method, url = '' }: IncomingMessage): string {
  const [, topic] = /^\/topics\/([^?]+)(?:\?|$)/.exec(url) ?? []
  if (method !== 'POST' || topic === undefined) {
    throw new AwsServiceError('ResourceNotFoundException', 'Use POST /topics/{topic}.', 404)
  }
  return decodeURIComponent(topic)
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
