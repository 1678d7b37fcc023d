import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { watchConnections } from '@platform/local/emulators/http/connections'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import { readJson, requireLoopbackHost, requireSigner } from '@platform/local/emulators/http/request'
import { listenAt } from '@platform/local/listening'
import { conflict, invalidValue, notFound, requestTooLarge } from './errors.ts'
import {
  activateLater,
  arnOf,
  functionOf,
  type Lambda,
  latestVersion,
  parseAddress,
  type Revision,
} from './function.ts'
import * as operations from './operations.ts'
import { maxPayloadBytes } from './runtime-api.ts'

/** The largest zip file in base64, and the other members of the request. */
const maxRequestBytes = 70 * 1024 * 1024

interface Response {
  status: number
  headers?: Record<string, string>
  body: Buffer
}

const functionsPath = '/2015-03-31/functions'
const functionPath = `${functionsPath}/{FunctionName}`

const routes: readonly (readonly [method: string, path: string, status: number, operation: operations.Operation])[] = [
  ['POST', functionsPath, 201, operations.createFunction],
  ['GET', functionsPath, 200, operations.listFunctions],
  ['GET', functionPath, 200, operations.getFunction],
  ['DELETE', functionPath, 204, operations.deleteFunction],
  ['GET', `${functionPath}/configuration`, 200, operations.getFunctionConfiguration],
  ['PUT', `${functionPath}/configuration`, 200, operations.updateFunctionConfiguration],
  ['PUT', `${functionPath}/code`, 200, operations.updateFunctionCode],
  ['POST', `${functionPath}/versions`, 201, operations.publishVersion],
  ['GET', `${functionPath}/versions`, 200, operations.listVersions],
  ['POST', `${functionPath}/aliases`, 201, operations.createAlias],
  ['GET', `${functionPath}/aliases/{Name}`, 200, operations.getAlias],
  ['PUT', `${functionPath}/aliases/{Name}`, 200, operations.updateAlias],
  ['GET', '/2017-03-31/tags/{Resource}', 200, operations.listTags],
]

const patternOf = (path: string): RegExp => new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`)
const table = routes.map(([method, path, status, operation]) => ({
  method,
  pattern: patternOf(path),
  status,
  operation,
}))
const invocations = patternOf(`${functionPath}/invocations`)

/** `close` completes requests that have arrived. */
export async function serveLambda(lambda: Lambda, accessKeyId: string | undefined) {
  const server = createServer({ keepAliveTimeout: 65_000 })
  const connections = watchConnections(server)
  server.on('request', (request, response) => {
    handle(lambda, request, accessKeyId)
      .catch(errorResponse)
      .then((result) => send(response, result))
      .catch(() => response.destroy())
  })
  const address = await listenAt(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      const closed = once(server.close(), 'close')
      await connections.close()
      await closed
    },
  }
}

async function handle(lambda: Lambda, request: IncomingMessage, accessKeyId: string | undefined): Promise<Response> {
  requireLoopbackHost(request)
  requireSigner(request, accessKeyId)
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://lambda')
  const membersOf = (groups: Record<string, string> = {}): Record<string, string> => ({
    ...Object.fromEntries(searchParams),
    ...Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)])),
  })
  const invocation = request.method === 'POST' ? invocations.exec(pathname) : null
  if (invocation !== null) return invoke(lambda, request, membersOf(invocation.groups))
  for (const { method, pattern, status, operation } of table) {
    const match = method === request.method ? pattern.exec(pathname) : null
    if (match === null) continue
    const body = await readJson(request, maxRequestBytes)
    const output = await operation(lambda, { ...body, ...membersOf(match.groups) })
    return { status, body: status === 204 ? Buffer.alloc(0) : Buffer.from(JSON.stringify(output)) }
  }
  throw new AwsServiceError('UnknownOperationException', `${request.method} ${pathname} is not supported.`, 404)
}

async function invoke(
  lambda: Lambda,
  request: IncomingMessage,
  { FunctionName = '', Qualifier }: Record<string, string>,
): Promise<Response> {
  const payload = await buffer(request)
  if (payload.length > maxPayloadBytes) throw requestTooLarge(maxPayloadBytes)
  const type = request.headers['x-amz-invocation-type'] ?? 'RequestResponse'
  if (type !== 'RequestResponse') throw invalidValue('Only synchronous invocations are supported.')
  const revision = invokedRevision(lambda, FunctionName, Qualifier)
  requireActive(lambda, revision)
  const { isError, payload: body } = await lambda.fleet.invoke(revision, payload)
  const version = { 'x-amz-executed-version': revision.version }
  return { status: 200, headers: { ...version, ...(isError && { 'x-amz-function-error': 'Unhandled' }) }, body }
}

function invokedRevision(lambda: Lambda, FunctionName: string, Qualifier: string | undefined): Revision {
  const { aliases, versions, active } = functionOf(lambda, { FunctionName })
  const { name, qualifier = latestVersion } = parseAddress({ FunctionName, Qualifier })
  const alias = aliases.get(qualifier)
  const [[otherVersion, weight] = ['', 0]] = Object.entries(alias?.weights ?? {})
  const version = lambda.random() < weight ? otherVersion : (alias?.version ?? qualifier)
  const revision = version === latestVersion ? active : versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, qualifier))
  return revision
}

/** Throws unless the revision is Active. The invocation of an Inactive revision also reactivates the revision. */
function requireActive(lambda: Lambda, revision: Revision): void {
  const { functionName, version, state } = revision
  if (state === 'Active') return
  if (state === 'Inactive') {
    revision.state = 'Pending'
    activateLater(lambda, revision)
  }
  throw conflict(`${arnOf(functionName, version)} is in the state ${state} and cannot be invoked.`)
}

function errorResponse(error: unknown): Response {
  const fault = error instanceof AwsServiceError ? error : new AwsServiceError('ServiceException', String(error), 500)
  const Type = fault.status < 500 ? 'User' : 'Service'
  const body = Buffer.from(JSON.stringify({ Type, Message: fault.message, message: fault.message }))
  return { status: fault.status, headers: { 'x-amzn-errortype': fault.code }, body }
}

function send(response: ServerResponse, { status, headers, body }: Response): void {
  const common = { 'content-type': 'application/json', 'x-amzn-requestid': crypto.randomUUID() }
  response.writeHead(status, { ...common, 'content-length': body.length, ...headers })
  response.end(body)
}
