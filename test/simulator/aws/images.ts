import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import type { JsonObject } from '@platform/local/emulators/http/request'
import { serveAws } from '@platform/local/emulators/http/server'
import type { Log } from '@platform/local/log'
import { startRegistry } from '@platform/local/registry/server'
import { writerName } from '@platform/local/registry/writer'
import { ociTarget } from '@platform/worker/runtimes/lambda/image'
import { type RegistryClient, registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { listen } from '../../support/http-server.ts'
import { forward } from './forward.ts'
import { registryPermissions, signerOf } from './required-permissions.ts'
import type { RequiredPermission } from '../graph/policy.ts'

export type ImageRegistry = Awaited<ReturnType<typeof startImageRegistry>>

export interface ImageRegistryOptions {
  folder: string
  isAllowed: (accessKeyId: string, permissions: readonly RequiredPermission[]) => boolean
  log: Log
}

type Repositories = Map<string, string | undefined>

const lambda = 'lambda.amazonaws.com'

export async function startImageRegistry({ folder, isAllowed, log }: ImageRegistryOptions) {
  await using resources = new AsyncDisposableStack()
  const password = randomUUID()
  const store = await startRegistry({ folder, port: 0, password, log })
  resources.defer(() => store.close(0))
  const repositories: Repositories = new Map()
  const owner = clientFor(store.host, writerName, password)
  const api = await serveAws({
    target: 'AmazonEC2ContainerRegistry_V20150921',
    contentType: 'application/x-amz-json-1.1',
    errorNamespace: '',
    respond: ({ action, input, authorization }) => perform({ repositories, owner }, action, input, authorization),
  })
  resources.defer(() => api.close())
  const mayAccess = (caller: string, repository: string, permissions: readonly RequiredPermission[]) =>
    caller === lambda
      ? permissions.every(({ action }) => allowsLambda(repositories.get(repository), action))
      : isAllowed(caller, permissions)
  const authorization = `Basic ${Buffer.from(`${writerName}:${password}`).toString('base64')}`
  const front = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    const { status, code } = errorFor(request, repositories, mayAccess) ?? {}
    if (status === undefined) return forward(request, response, `http://${store.host}`, undefined, { authorization })
    response.writeHead(status, { 'content-type': 'application/json', 'www-authenticate': 'Basic realm="images"' })
    response.end(JSON.stringify({ errors: [{ code, message: 'See the code.' }] }))
  })
  const { host } = resources.use(await listen(front))
  const started = resources.move()
  // This client has only the access that repository policies grant to Lambda.
  const lambdaClient = clientFor(host, tokenUser, lambda)
  return { url: api.url, host, asLambda: lambdaClient, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** User name of registry logins. The password is a token of the API and identifies the caller. */
const tokenUser = 'AWS'

const clientFor = (host: string, username: string, password: string): RegistryClient =>
  registryClient(host, { transport: plainTransport, credentials: async () => ({ username, password }) })

interface Account {
  repositories: Repositories
  owner: RegistryClient
}

async function perform({ repositories, owner }: Account, action: string, input: JsonObject, authorization: string) {
  const name = String(input['repositoryName'])
  const requireRepository = () => {
    if (!repositories.has(name))
      throw new AwsServiceError('RepositoryNotFoundException', `The repository ${name} does not exist.`)
  }
  const actions: Record<string, () => JsonObject | Promise<JsonObject>> = {
    GetAuthorizationToken: () => {
      const authorizationToken = Buffer.from(`${tokenUser}:${signerOf(authorization)}`).toString('base64')
      return { authorizationData: [{ authorizationToken }] }
    },
    CreateRepository: () => {
      if (repositories.has(name))
        throw new AwsServiceError('RepositoryAlreadyExistsException', `The repository ${name} already exists.`)
      repositories.set(name, undefined)
      return { repository: { repositoryName: name } }
    },
    SetRepositoryPolicy: () => {
      requireRepository()
      repositories.set(name, String(input['policyText']))
      return { repositoryName: name }
    },
    DeleteRepository: async () => {
      requireRepository()
      await ociTarget(owner, '').removeRepository(name)
      repositories.delete(name)
      return {}
    },
  }
  const operation = actions[action]
  if (operation === undefined) throw new AwsServiceError('UnknownOperationException', `${action} is not supported.`)
  return operation()
}

function allowsLambda(policy: string | undefined, action: string): boolean {
  const { Statement = [] } = JSON.parse(policy ?? '{}')
  return Statement.some(
    (each: any) => each.Effect === 'Allow' && each.Principal?.Service === lambda && each.Action.includes(action),
  )
}

function errorFor(
  { method = '', url = '', headers }: IncomingMessage,
  repositories: Repositories,
  mayAccess: (caller: string, repository: string, permissions: readonly RequiredPermission[]) => boolean,
): { status: number; code: string } | undefined {
  const [, encodedCredentials = ''] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? []
  const [, caller] = /^AWS:(.+)$/.exec(Buffer.from(encodedCredentials, 'base64').toString()) ?? []
  if (caller === undefined) return { status: 401, code: 'UNAUTHORIZED' }
  const requiredPermissions = registryPermissions(method, url)
  if (requiredPermissions === undefined) return { status: 405, code: 'UNSUPPORTED' }
  const { repository, permissions } = requiredPermissions
  if (!mayAccess(caller, repository, permissions)) return { status: 403, code: 'DENIED' }
  return repositories.has(repository) ? undefined : { status: 404, code: 'NAME_UNKNOWN' }
}
