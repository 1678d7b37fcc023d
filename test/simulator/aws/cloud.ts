import { join } from 'node:path'
import { LambdaClient } from '@aws-sdk/client-lambda'
import { clientSettings, localRegion, newAccessKeyId } from '@platform/local/emulators/http/environment'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import type { Log } from '@platform/local/log'
import { startSecretsManager } from '@platform/local/emulators/secrets/server'
import { startSqs } from '@platform/local/emulators/sqs/server'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import type { DeployedFunction } from '../graph/functions.ts'
import type { Graph } from '../graph/graph.ts'
import { startLambda } from '../lambda/start.ts'
import { type AccessDenial, type IamProxy, startIamProxy } from './iam-proxy.ts'
import { startChannel } from './channel.ts'
import { type ImageRegistry, startImageRegistry } from './images.ts'
import { deployFunctions, provision } from './provision.ts'

export type Cloud = Awaited<ReturnType<typeof startCloud>>

export interface CloudOptions {
  graph: Graph
  functions: readonly DeployedFunction[]
  codeDir: string
  onOutput: (functionName: string, text: string) => void
  log: Log
}

export async function startCloud({ graph, functions, codeDir, onOutput, log }: CloudOptions) {
  await using resources = new AsyncDisposableStack()
  const folder = resources.use(await temporaryFolder()).path
  const closing = <Service extends { close: () => Promise<void> }>(service: Service) => {
    resources.defer(() => service.close())
    return service
  }
  // A random key, which other users of this machine do not know.
  const accessKeyId = newAccessKeyId()
  const keyPrefix = newAccessKeyId()
  const accessKeyOf = (functionName: string) => `${keyPrefix}-${functionName}`
  const dynamoDb = closing(await startDynamoDb({ accessKeyId }))
  const sqs = closing(await startSqs({ accessKeyId }))
  const secrets = closing(await startSecretsManager({ accessKeyId }))
  let iamProxy: IamProxy | undefined
  const isAllowed: IamProxy['isAllowed'] = (...request) => iamProxy?.isAllowed(...request) ?? false
  const images = resources.use(await startImageRegistry({ folder: join(folder, 'registry'), isAllowed, log }))
  const lambda = closing(
    await startLambda({
      codeDir,
      zipDir: join(folder, 'zips'),
      images: { registry: accountRegistry(images), storeDir: join(folder, 'images') },
      accessKeyId,
      environmentOf: (functionName) => credentials(accessKeyOf(functionName), iamProxy),
      onOutput,
    }),
  )
  const client = new LambdaClient(clientSettings(lambda.url, accessKeyId))
  resources.defer(async () => client.destroy())
  const channel = resources.use(await startChannel(graph, client, accessKeyId, log))
  const targets = {
    dynamodb: dynamoDb.url,
    sqs: sqs.url,
    secrets: secrets.url,
    lambda: lambda.url,
    ecr: images.url,
    iot: channel.dataPlaneUrl,
  }
  const principals = new Map(functions.map((each) => [accessKeyOf(each.functionName), each]))
  const onDenial = ({ functionName, ...permission }: AccessDenial) =>
    log('the role of a function does not allow the request', { function: functionName, ...permission })
  iamProxy = resources.use(
    await startIamProxy({ targets, accessKeyId, principalOf: (key) => principals.get(key), onDenial }),
  )
  const { urls } = iamProxy
  await provision(graph, { ...targets, accessKeyId })
  await deployFunctions(
    client,
    functions.map((each) => withLocalAddresses(each, urls, images, channel.url)),
  )
  const started = resources.move()
  return {
    iamProxy,
    dynamoDbUrl: dynamoDb.url,
    sqsUrl: sqs.url,
    secretsUrl: secrets.url,
    accessKeyId,
    lambda: client,
    accessKeyOf,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

/** Lambda accepts images only from the account's own registry. */
const accountRegistry =
  ({ host, asLambda }: ImageRegistry) =>
  (imageHost: string) => {
    if (imageHost === host) return asLambda
    throw new AwsServiceError('InvalidParameterValueException', `Source image ${imageHost} is not valid.`)
  }

function withLocalAddresses(
  deployed: DeployedFunction,
  urls: IamProxy['urls'],
  { host }: ImageRegistry,
  channelUrl: string,
): DeployedFunction {
  const entries = Object.entries(deployed.environment).map(
    ([name, value]) =>
      [
        name,
        value
          .replace(/^https:\/\/sqs\.[^/]+/, urls.sqs)
          .replace(/^\d{12}\.dkr\.ecr\.[^/]+/, host)
          .replace(/^https:\/\/[^/]+\.iot\.[^/]+/, urls.iot)
          .replace(/^wss:\/\/[^/]+\.iot\.[^/]+/, channelUrl),
      ] as const,
  )
  const environment = Object.fromEntries(entries)
  // The local registry must be allowed explicitly; on AWS, the registry has a public address.
  const allowedRegistries = [environment['PLAT_REGISTRY_ALLOW'], host].filter(Boolean).join(',')
  return { ...deployed, environment: { ...environment, PLAT_REGISTRY_ALLOW: allowedRegistries } }
}

function credentials(accessKeyId: string, iamProxy: IamProxy | undefined): Record<string, string> {
  const { urls } = iamProxy ?? {}
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
