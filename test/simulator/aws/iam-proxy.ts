import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as send,
  type ServerResponse,
} from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listenAt } from '@platform/local/listening'
import { allowing, type RequiredPermission, type Statement } from '../graph/policy.ts'
import { lambdaPermissions, targetPermissions, queueNameOf, signerOf } from './required-permissions.ts'

/** The function whose access key signed a request, and the statements of its role. */
export interface Principal {
  name: string
  statements: readonly Statement[]
}

/** A proxy between functions and AWS that allows only what the function's role allows. */
export interface IamProxy extends AsyncDisposable {
  urls: Readonly<Record<Service, string>>
  /** Statement of a role → the actions that it has allowed. */
  used: ReadonlyMap<Statement, ReadonlySet<string>>
  /** Function → number of its requests. */
  asked: ReadonlyMap<string, number>
  /** Denied requests, in order. */
  denials: readonly AccessDenial[]
  /** Removes a statement from its function and aborts requests that it allowed. Returns a function that restores it. */
  withhold: (statement: Statement) => () => void
  /** Whether the owner of an access key may make a request elsewhere; recorded like a request here. */
  admits: (accessKeyId: string, demands: readonly RequiredPermission[]) => boolean
}

export interface AccessDenial extends RequiredPermission {
  functionName: string
}

export type Service = 'dynamodb' | 'sqs' | 'secrets' | 'lambda' | 'ecr'

interface Wish {
  targets: Readonly<Record<Service, string>>
  /** Access key of the services; functions do not know it. */
  accessKeyId: string
  principalOf: (accessKeyId: string) => Principal | undefined
  onDenial?: (denial: AccessDenial) => void
}

/** Starts the proxy, one loopback port for each service. */
export async function startIamProxy({
  targets,
  accessKeyId,
  principalOf,
  onDenial = () => {},
}: Wish): Promise<IamProxy> {
  const used = new Map<Statement, Set<string>>()
  const asked = new Map<string, number>()
  const denials: AccessDenial[] = []
  const withheld = new Set<Statement>()
  const underWay = new Set<{ statements: readonly Statement[]; response: ServerResponse }>()

  /** The statements that allow the permissions, or the first permission that none allows, which is recorded. */
  const judge = (demands: readonly RequiredPermission[], principal: Principal): Statement[] | RequiredPermission => {
    asked.set(principal.name, (asked.get(principal.name) ?? 0) + 1)
    const held = principal.statements.filter((statement) => !withheld.has(statement))
    const grounds: Statement[] = []
    for (const demand of demands) {
      const statement = allowing(held, demand)
      if (statement === undefined) {
        const denial = { functionName: principal.name, ...demand }
        denials.push(denial)
        onDenial(denial)
        return demand
      }
      grounds.push(statement)
      used.set(statement, (used.get(statement) ?? new Set()).add(demand.action))
    }
    return grounds
  }

  const answer = async (service: Service, request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    const principal = principalOf(signerOf(request.headers.authorization))
    if (principal === undefined) return refuse(response, 'UnrecognizedClientException', 'Unknown access key.')
    const judged = judge(demandsOf(service, request, body), principal)
    if ('action' in judged) {
      const { action, resource } = judged
      const message = `${principal.name} is not authorized to perform ${action} on ${resource}`
      return refuse(response, 'AccessDeniedException', message)
    }
    const passing = { statements: judged, response }
    underWay.add(passing)
    response.on('close', () => underWay.delete(passing))
    // The registry needs the caller's own credentials.
    const signed = service === 'ecr' ? request : signedBy(accessKeyId, request)
    return pass(targets[service], signed, toStandIn(service, body, targets.sqs), response)
  }

  const doors = await Promise.all([
    listen('dynamodb', answer),
    listen('sqs', answer),
    listen('secrets', answer),
    listen('lambda', answer),
    listen('ecr', answer),
  ])
  const [dynamodb, sqs, secrets, lambda, ecr] = doors
  return {
    urls: { dynamodb: dynamodb.url, sqs: sqs.url, secrets: secrets.url, lambda: lambda.url, ecr: ecr.url },
    used,
    asked,
    denials,
    withhold: (statement) => {
      withheld.add(statement)
      for (const { statements, response } of underWay) if (statements.includes(statement)) response.destroy()
      return () => void withheld.delete(statement)
    },
    admits: (accessKeyId, demands) => {
      const principal = principalOf(accessKeyId)
      return principal !== undefined && !('action' in judge(demands, principal))
    },
    [Symbol.asyncDispose]: async () => void (await Promise.all(doors.map(({ close }) => close()))),
  }
}

function demandsOf(
  service: Service,
  { method = '', url = '', headers }: IncomingMessage,
  body: Buffer,
): RequiredPermission[] {
  // Payloads of invocations may be any bytes.
  const isPayload = service === 'lambda' && url.includes('/invocations')
  const input = body.length === 0 || isPayload ? {} : JSON.parse(body.toString())
  return service === 'lambda'
    ? lambdaPermissions(method, url, input)
    : targetPermissions(String(headers['x-amz-target'] ?? ''), input)
}

/** Queue URLs use AWS names; the emulator has other addresses. */
function toStandIn(service: Service, body: Buffer, sqsUrl: string): Buffer {
  if (service !== 'sqs') return body
  const input = JSON.parse(body.toString())
  return Buffer.from(JSON.stringify({ ...input, QueueUrl: `${sqsUrl}/000000000000/${queueNameOf(input.QueueUrl)}` }))
}

function refuse(response: ServerResponse, code: string, message: string): void {
  response.writeHead(400, { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-errortype': code })
  response.end(JSON.stringify({ __type: code, message, Message: message }))
}

/** Signatures are not verified: the access key identifies the caller. */
function signedBy(accessKeyId: string, request: IncomingMessage): IncomingMessage {
  const { authorization } = request.headers
  if (authorization !== undefined) {
    request.headers.authorization = authorization.replace(/Credential=[^/,\s]+/, `Credential=${accessKeyId}`)
  }
  return request
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
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
