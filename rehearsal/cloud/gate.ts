import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as send,
  type ServerResponse,
} from 'node:http'
import { buffer } from 'node:stream/consumers'
import { allowing, type Demand, type Statement } from '../graph/policy.ts'
import { ofLambda, ofTarget, queueNameOf } from './demand.ts'

/** Who asks: the function whose access key a request is signed with, and what its role allows. */
export interface Principal {
  name: string
  statements: readonly Statement[]
}

/** What stands between the functions and AWS: it lets through what the role of a function allows, and nothing else. */
export interface Gate extends AsyncDisposable {
  /** Where each service is reached through it. */
  urls: Readonly<Record<Service, string>>
  /** Function → what it was allowed by, as `action resource` of the statement. */
  used: ReadonlyMap<string, ReadonlySet<Statement>>
  /** What was refused, in order. */
  denials: readonly { name: string; demand: Demand }[]
  /** Takes a statement away from a function until it is given back. */
  withhold: (name: string, statement: Statement) => () => void
}

export type Service = 'dynamodb' | 'sqs' | 'secrets' | 'lambda'

interface Wish {
  /** Where the services really are. */
  targets: Readonly<Record<Service, string>>
  /** The principal of an access key; undefined: nobody's. */
  principalOf: (accessKeyId: string) => Principal | undefined
}

/** Starts the gate, one loopback port for each service. */
export async function startGate({ targets, principalOf }: Wish): Promise<Gate> {
  const used = new Map<string, Set<Statement>>()
  const denials: { name: string; demand: Demand }[] = []
  const withheld = new Set<Statement>()

  const judge = (demands: readonly Demand[], principal: Principal): Demand | undefined => {
    const seen = used.get(principal.name) ?? new Set()
    used.set(principal.name, seen)
    const statements = principal.statements.filter((statement) => !withheld.has(statement))
    for (const demand of demands) {
      const statement = allowing(statements, demand)
      if (statement === undefined) return demand
      seen.add(statement)
    }
    return undefined
  }

  const answer = async (service: Service, request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    const principal = principalOf(accessKeyOf(request))
    if (principal === undefined) return refuse(response, 'UnrecognizedClientException', 'Nobody has this access key.')
    const refused = judge(demandsOf(service, request, body), principal)
    if (refused !== undefined) {
      denials.push({ name: principal.name, demand: refused })
      const message = `${principal.name} is not authorized to perform ${refused.action} on ${refused.resource}`
      return refuse(response, 'AccessDeniedException', message)
    }
    return pass(targets[service], request, toStandIn(service, body, targets.sqs), response)
  }

  const [dynamodb, sqs, secrets, lambda] = await Promise.all([
    listen('dynamodb', answer),
    listen('sqs', answer),
    listen('secrets', answer),
    listen('lambda', answer),
  ])
  return {
    urls: { dynamodb: dynamodb.url, sqs: sqs.url, secrets: secrets.url, lambda: lambda.url },
    used,
    denials,
    withhold: (_, statement) => {
      withheld.add(statement)
      return () => void withheld.delete(statement)
    },
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all([dynamodb, sqs, secrets, lambda].map(({ close }) => close()))),
  }
}

const accessKeyOf = ({ headers }: IncomingMessage): string =>
  /Credential=([^/,\s]+)\//.exec(headers.authorization ?? '')?.[1] ?? ''

function demandsOf(service: Service, { method = '', url = '', headers }: IncomingMessage, body: Buffer): Demand[] {
  // What is invoked gets any bytes.
  const isPayload = service === 'lambda' && url.includes('/invocations')
  const input = body.length === 0 || isPayload ? {} : JSON.parse(body.toString())
  return service === 'lambda' ? ofLambda(method, url, input) : ofTarget(String(headers['x-amz-target'] ?? ''), input)
}

/** Queues have the names that they would have on AWS, and other addresses. */
function toStandIn(service: Service, body: Buffer, sqsUrl: string): Buffer {
  if (service !== 'sqs') return body
  const input = JSON.parse(body.toString())
  return Buffer.from(JSON.stringify({ ...input, QueueUrl: `${sqsUrl}/000000000000/${queueNameOf(input.QueueUrl)}` }))
}

function refuse(response: ServerResponse, code: string, message: string): void {
  response.writeHead(400, { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-errortype': code })
  response.end(JSON.stringify({ __type: code, message, Message: message }))
}

function pass(target: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { host } = new URL(target)
  const headers: OutgoingHttpHeaders = { ...request.headers, host, 'content-length': body.length }
  const outgoing = send(`${target}${request.url ?? ''}`, { method: request.method, headers }, (incoming) => {
    response.writeHead(incoming.statusCode ?? 502, incoming.headers)
    incoming.pipe(response)
  })
  response.on('close', () => outgoing.destroy())
  outgoing.on('error', () => response.destroy())
  outgoing.end(body)
}

async function listen(
  service: Service,
  answer: (service: Service, request: IncomingMessage, response: ServerResponse) => Promise<void>,
) {
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    answer(service, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
