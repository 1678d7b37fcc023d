import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LambdaClient } from '@aws-sdk/client-lambda'
import { clientSettings, localRegion } from '@platform/local/aws-environment'
import { startDynamoDb } from '@platform/local/dynamodb/server'
import { startLambda } from '@platform/local/lambda/start'
import { startSecretsManager } from '@platform/local/secrets/server'
import { startSqs } from '@platform/local/sqs/server'
import { type RegistryClient } from '@platform/registry/client'
import { type DeployedFunction } from '../graph/functions.ts'
import { type Graph } from '../graph/graph.ts'
import { deployFunctions } from './deploy.ts'
import { type Gate, startGate } from './gate.ts'
import { provision } from './provision.ts'

/** AWS as far as the platform needs it, on this machine: with the resources of a graph, and its roles enforced. */
export interface Cloud extends AsyncDisposable {
  gate: Gate
  secretsUrl: string
  /** For whoever calls functions from outside: the gateway, the clocks, the queues. */
  lambda: LambdaClient
  /** The access key that a function's requests are signed with. */
  accessKeyOf: (functionName: string) => string
}

export interface CloudOptions {
  graph: Graph
  functions: readonly DeployedFunction[]
  /** Folder of the built functions. */
  codeDir: string
  /** Where the images of modules are. */
  registry: (host: string) => RegistryClient
  /** Hears what functions write. */
  onOutput: (functionName: string, text: string) => void
}

/** An access key says whose it is: nothing else could sign with it here. */
const accessKeyOf = (functionName: string): string => `KEY-${functionName}`

/** Starts the stand-ins, makes the resources of the graph in them, and deploys the functions. */
export async function startCloud({ graph, functions, codeDir, registry, onOutput }: CloudOptions): Promise<Cloud> {
  await using parts = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'rehearsal-'))
  parts.defer(() => rm(folder, { recursive: true, force: true }))
  const own = <Service extends { close: () => Promise<void> }>(service: Service) => {
    parts.defer(() => service.close())
    return service
  }
  const dynamoDb = own(await startDynamoDb())
  const sqs = own(await startSqs())
  const secrets = own(await startSecretsManager())
  let gate: Gate | undefined
  const lambda = own(
    await startLambda({
      codeDir,
      images: { registry, storeDir: join(folder, 'images') },
      environmentOf: (functionName) => credentials(functionName, gate),
      onOutput,
    }),
  )
  const targets = { dynamodb: dynamoDb.url, sqs: sqs.url, secrets: secrets.url, lambda: lambda.url }
  const principals = new Map(functions.map((each) => [accessKeyOf(each.functionName), each]))
  gate = parts.use(await startGate({ targets, principalOf: (key) => principals.get(key) }))
  await provision(graph, targets)
  const client = new LambdaClient(clientSettings(lambda.url, 'deployer'))
  parts.defer(async () => client.destroy())
  await deployFunctions(
    client,
    functions.map((each) => atHome(each, gate)),
  )
  const moved = parts.move()
  return {
    gate,
    secretsUrl: secrets.url,
    lambda: client,
    accessKeyOf,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

/** The SDK calls a queue at its own address: here that is the gate's. */
function atHome(deployed: DeployedFunction, { urls }: Gate): DeployedFunction {
  const entries = Object.entries(deployed.environment).map(
    ([name, value]) => [name, value.replace(/^https:\/\/sqs\.[^/]+/, urls.sqs)] as const,
  )
  return { ...deployed, environment: Object.fromEntries(entries) }
}

/** What Lambda gives to a function in place of credentials; modules have a role that allows nothing here. */
function credentials(functionName: string, gate: Gate | undefined): Record<string, string> {
  const { urls } = gate ?? {}
  if (urls === undefined) return {}
  return {
    AWS_ACCESS_KEY_ID: accessKeyOf(functionName),
    AWS_SECRET_ACCESS_KEY: 'signatures-are-not-verified',
    AWS_REGION: localRegion,
    AWS_ENDPOINT_URL_DYNAMODB: urls.dynamodb,
    AWS_ENDPOINT_URL_SQS: urls.sqs,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: urls.secrets,
    AWS_ENDPOINT_URL_LAMBDA: urls.lambda,
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  }
}
