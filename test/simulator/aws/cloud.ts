import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LambdaClient } from '@aws-sdk/client-lambda'
import { clientSettings, localRegion, newAccessKeyId } from '@platform/local/emulators/http/environment'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { startLambda } from '../lambda/start.ts'
import type { Log } from '@platform/local/log'
import { startSecretsManager } from '@platform/local/emulators/secrets/server'
import { startSqs } from '@platform/local/emulators/sqs/server'
import { type DeployedFunction } from '../graph/functions.ts'
import { type Graph } from '../graph/graph.ts'
import { deployFunctions } from './deploy.ts'
import { type AccessDenial, type IamProxy, startIamProxy } from './iam-proxy.ts'
import { type Images, startImages } from './images.ts'
import { provision } from './provision.ts'

/** AWS as far as the platform needs it, on this machine: the resources of a graph with its roles enforced. */
export interface Cloud extends AsyncDisposable {
  gate: IamProxy
  dynamoDbUrl: string
  sqsUrl: string
  secretsUrl: string
  /** Access key of the services themselves; other users of this machine do not know it. */
  accessKeyId: string
  lambda: LambdaClient
  accessKeyOf: (functionName: string) => string
  /** Ends a function's idle sandboxes, so that its next invocation is a cold start. */
  forget: (functionName: string) => Promise<void>
}

export interface CloudOptions {
  graph: Graph
  functions: readonly DeployedFunction[]
  codeDir: string
  onOutput: (functionName: string, text: string) => void
  log: Log
}

/** Starts the emulators, creates the resources of the graph in them, and deploys the functions. */
export async function startCloud({ graph, functions, codeDir, onOutput, log }: CloudOptions): Promise<Cloud> {
  await using parts = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  parts.defer(() => rm(folder, { recursive: true, force: true }))
  const own = <Service extends { close: () => Promise<void> }>(service: Service) => {
    parts.defer(() => service.close())
    return service
  }
  const accessKeyId = newAccessKeyId()
  const keyPrefix = newAccessKeyId()
  const accessKeyOf = (functionName: string) => `${keyPrefix}-${functionName}`
  const dynamoDb = own(await startDynamoDb({ accessKeyId }))
  const sqs = own(await startSqs({ accessKeyId }))
  const secrets = own(await startSecretsManager({ accessKeyId }))
  let gate: IamProxy | undefined
  const admits: IamProxy['admits'] = (...asked) => gate?.admits(...asked) ?? false
  const images = parts.use(await startImages({ folder: join(folder, 'registry'), admits, log }))
  const lambda = own(
    await startLambda({
      codeDir,
      zipDir: join(folder, 'zips'),
      images: { registry: onlyIn(images), storeDir: join(folder, 'images') },
      accessKeyId,
      environmentOf: (functionName) => credentials(accessKeyOf(functionName), gate),
      onOutput,
    }),
  )
  const targets = { dynamodb: dynamoDb.url, sqs: sqs.url, secrets: secrets.url, lambda: lambda.url, ecr: images.url }
  const principals = new Map(functions.map((each) => [accessKeyOf(each.functionName), each]))
  const onDenial = ({ functionName, ...demand }: AccessDenial) =>
    log('the role of a function does not allow the request', { function: functionName, ...demand })
  gate = parts.use(await startIamProxy({ targets, accessKeyId, principalOf: (key) => principals.get(key), onDenial }))
  await provision(graph, { ...targets, accessKeyId })
  const client = new LambdaClient(clientSettings(lambda.url, accessKeyId))
  parts.defer(async () => client.destroy())
  await deployFunctions(
    client,
    functions.map((each) => atHome(each, gate, images)),
  )
  const moved = parts.move()
  return {
    gate,
    dynamoDbUrl: dynamoDb.url,
    sqsUrl: sqs.url,
    secretsUrl: secrets.url,
    accessKeyId,
    lambda: client,
    accessKeyOf,
    forget: (functionName) => lambda.reap(functionName),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

/** Lambda accepts images only from the account's own registry. */
const onlyIn =
  ({ host, asLambda }: Images) =>
  (asked: string) => {
    if (asked === host) return asLambda
    throw new AwsServiceError('InvalidParameterValueException', `Source image ${asked} is not valid.`)
  }

/**
 * Replaces the AWS addresses of queues and images in a function's environment with those of the proxy and the registry.
 */
function atHome(deployed: DeployedFunction, { urls }: IamProxy, { host }: Images): DeployedFunction {
  const entries = Object.entries(deployed.environment).map(
    ([name, value]) =>
      [name, value.replace(/^https:\/\/sqs\.[^/]+/, urls.sqs).replace(/^\d{12}\.dkr\.ecr\.[^/]+/, host)] as const,
  )
  const environment = Object.fromEntries(entries)
  // On AWS that registry has a public address.
  const allowed = [environment['PLAT_REGISTRY_ALLOW'], host].filter(Boolean).join(',')
  return { ...deployed, environment: { ...environment, PLAT_REGISTRY_ALLOW: allowed } }
}

/** Credentials in a sandbox's environment. Modules get a role without permissions. */
function credentials(accessKeyId: string, gate: IamProxy | undefined): Record<string, string> {
  const { urls } = gate ?? {}
  if (urls === undefined) return {}
  return {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: 'signatures-are-not-verified',
    AWS_REGION: localRegion,
    AWS_ENDPOINT_URL_DYNAMODB: urls.dynamodb,
    AWS_ENDPOINT_URL_SQS: urls.sqs,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: urls.secrets,
    AWS_ENDPOINT_URL_LAMBDA: urls.lambda,
    AWS_ENDPOINT_URL_ECR: urls.ecr,
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  }
}
