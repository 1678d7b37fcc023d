import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { allowing, type RequiredPermission, type Statement } from '../graph/policy.ts'
import { listen } from '../../support/http-server.ts'
import { forward } from './forward.ts'
import { iotPermissions, lambdaPermissions, targetPermissions, queueNameOf, signerOf } from './required-permissions.ts'

export interface Principal {
  name: string
  statements: readonly Statement[]
}

export interface IamProxy extends AsyncDisposable {
  urls: Readonly<Record<Service, string>>
  /** Statement of a role → the actions that it has allowed. */
  used: ReadonlyMap<Statement, ReadonlySet<string>>
  denials: readonly AccessDenial[]
  /** Denies the actions that the statement allows, without recording denials, until the result is disposed. */
  withhold: (statement: Statement) => Disposable
  /**
   * Whether the owner of an access key has these permissions. Records denials and used permissions, like a request to
   * the proxy.
   */
  isAllowed: (accessKeyId: string, permissions: readonly RequiredPermission[]) => boolean
}

export interface AccessDenial extends RequiredPermission {
  functionName: string
}

export type Service = 'dynamodb' | 'sqs' | 'secrets' | 'lambda' | 'ecr' | 'iot'

interface IamProxyOptions {
  targets: Readonly<Record<Service, string>>
  accessKeyId: string
  principalOf: (accessKeyId: string) => Principal | undefined
  onDenial?: (denial: AccessDenial) => void
}

export async function startIamProxy(options: IamProxyOptions): Promise<IamProxy> {
  const { targets, accessKeyId, principalOf, onDenial = () => {} } = options
  const usedActions = new Map<Statement, Set<string>>()
  const denials: AccessDenial[] = []
  const withheld = new Set<Statement>()

  const findDenied = (
    permissions: readonly RequiredPermission[],
    { name, statements }: Principal,
  ): RequiredPermission | undefined =>
    permissions.find((permission) => {
      const statement = allowing(statements, permission)
      if (statement === undefined) {
        const denial = { functionName: name, ...permission }
        denials.push(denial)
        onDenial(denial)
        return true
      }
      if (withheld.has(statement)) return true
      usedActions.set(statement, (usedActions.get(statement) ?? new Set()).add(permission.action))
      return false
    })

  const handle = async (service: Service, request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    const principal = principalOf(signerOf(request.headers.authorization))
    if (principal === undefined) return reject(response, 'UnrecognizedClientException', 'Unknown access key.')
    const denial = findDenied(permissionsOf(service, request, body), principal)
    if (denial !== undefined) {
      const message = `${principal.name} is not authorized to perform ${denial.action} on ${denial.resource}`
      return reject(response, 'AccessDeniedException', message)
    }
    // The registry needs the caller's own credentials.
    if (service !== 'ecr') replaceSigner(request, accessKeyId)
    forward(request, response, targets[service], service === 'sqs' ? withEmulatorUrl(body, targets.sqs) : body)
  }

  const services = ['dynamodb', 'sqs', 'secrets', 'lambda', 'ecr', 'iot'] as const
  const servers = await Promise.all(
    services.map((service) =>
      listen(
        createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
          handle(service, request, response).catch(() => response.destroy())
        }),
      ),
    ),
  )
  const [dynamodb = '', sqs = '', secrets = '', lambda = '', ecr = '', iot = ''] = servers.map(({ url }) => url)
  return {
    urls: { dynamodb, sqs, secrets, lambda, ecr, iot },
    used: usedActions,
    denials,
    withhold: (statement) => {
      withheld.add(statement)
      return { [Symbol.dispose]: () => void withheld.delete(statement) }
    },
    isAllowed: (key, permissions) => {
      const principal = principalOf(key)
      return principal !== undefined && findDenied(permissions, principal) === undefined
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    },
  }
}

function permissionsOf(
  service: Service,
  { method = '', url = '', headers }: IncomingMessage,
  body: Buffer,
): RequiredPermission[] {
  if (service === 'iot') return iotPermissions(method, url)
  // Payloads of invocations may be any bytes.
  const isPayload = service === 'lambda' && url.includes('/invocations')
  const input = body.length === 0 || isPayload ? {} : JSON.parse(body.toString())
  return service === 'lambda'
    ? lambdaPermissions(method, url, input)
    : targetPermissions(String(headers['x-amz-target'] ?? ''), input)
}

/** Replaces the AWS queue URL with the URL of the emulator. */
function withEmulatorUrl(body: Buffer, sqsUrl: string): Buffer {
  const input = JSON.parse(body.toString())
  return Buffer.from(JSON.stringify({ ...input, QueueUrl: `${sqsUrl}/000000000000/${queueNameOf(input.QueueUrl)}` }))
}

function reject(response: ServerResponse, code: string, message: string): void {
  response.writeHead(400, { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-errortype': code })
  response.end(JSON.stringify({ __type: code, message, Message: message }))
}

/** Replaces only the access key: the emulators do not verify signatures. */
function replaceSigner({ headers }: IncomingMessage, accessKeyId: string): void {
  headers.authorization = headers.authorization?.replace(/Credential=[^/,\s]+/, `Credential=${accessKeyId}`)
}
