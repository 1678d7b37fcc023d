import {
  GetFunctionConfigurationCommand,
  LambdaClient,
  type LambdaClientConfig,
  ListVersionsByFunctionCommand,
} from '@aws-sdk/client-lambda'
import { type Deployment } from '@platform/core/modules/record'
import { type LambdaOptions, type RunningLambda, startLambda } from '../simulator/lambda/start.ts'
import { lambdaRuntime, type LambdaSettings } from '@platform/worker/runtimes/lambda/runtime'
import { ociTarget } from '@platform/worker/runtimes/lambda/registry-target'
import { type ModuleRuntime } from '@platform/worker/runtimes/port'
import { type RegistryClient } from '@platform/oci/client'
import { thisPlatform } from '@platform/oci/image'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { limits, textOf } from './local-runtime.ts'
import { type MemoryRegistry, memoryRegistry } from './memory-registry.ts'
import { pushProgram } from './module-image.ts'
import { temporaryFolder } from './temporary-folder.ts'

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

/** What happens to the calls of a client on their way: `send` carries one out. */
export type InterceptCall = (call: { method: string; path: string }, send: () => Promise<any>) => Promise<any>

export interface LambdaOptionsInput extends LambdaOptions {
  settings?: Partial<LambdaSettings>
  /** Where modules come from; a registry in memory. */
  source?: RegistryClient
}

/** The platform's runtime over the SDK, Lambda, and two registries: where modules come from, and Lambda's own. */
export interface LambdaFixtures extends AsyncDisposable {
  runtime: ModuleRuntime
  lambda: RunningLambda
  /** Lambda's own interface, for what a test does or sees beside the runtime. */
  client: LambdaClient
  registry: MemoryRegistry
  target: MemoryRegistry
  /** What modules have written. */
  output: () => string
  /** The runtime of another process, with a Lambda or settings of its own. */
  another: (settings?: Partial<LambdaSettings>, meddle?: InterceptCall) => ModuleRuntime
}

export async function startLambdaFixtures({
  settings: given = {},
  source,
  ...options
}: LambdaOptionsInput = {}): Promise<LambdaFixtures> {
  const folder = await temporaryFolder()
  const [registry, target] = [memoryRegistry('registry.test'), memoryRegistry('lambda.test')]
  let written = ''
  const lambda = await startLambda({
    images: { registry: () => target, storeDir: folder.path },
    settleMs: 0,
    onOutput: (_, text) => {
      written += text
    },
    ...options,
  })
  const aws = { endpoint: lambda.url, region: 'eu-central-1', credentials }
  const another: LambdaFixtures['another'] = (settings = {}, meddle) =>
    lambdaRuntime({
      aws: meddle === undefined ? aws : { ...aws, ...meddledWith(meddle) },
      prefix: 'mod',
      role: 'arn:aws:iam::000000000000:role/modules',
      images: {
        source: () => source ?? registry,
        target: ociTarget(target, 'platform/modules'),
        platform: thisPlatform(),
      },
      tokenOf: async (id) => `token of ${id}`,
      timeoutSeconds: 20,
      pollMs: 2,
      ...given,
      ...settings,
    })
  const client = new LambdaClient(aws)
  const close = async () => {
    client.destroy()
    await lambda.close()
    await folder[Symbol.asyncDispose]()
  }
  const runtime = another()
  return { runtime, lambda, client, registry, target, output: () => written, another, [Symbol.asyncDispose]: close }
}

/** A client whose calls are tried once, and meddled with. */
function meddledWith(meddle: InterceptCall): LambdaClientConfig {
  const handler = new NodeHttpHandler()
  const handle: NodeHttpHandler['handle'] = (request, options) =>
    meddle({ method: request.method, path: request.path }, () => handler.handle(request, options))
  return { maxAttempts: 1, requestHandler: Object.assign(Object.create(handler), { handle }) }
}

/** A program that answers every event of Lambda with what an expression of `event` makes of it: text that goes out as it is. */
export const moduleSource = (expression: string): string => `
  const base = 'http://' + process.env.AWS_LAMBDA_RUNTIME_API + '/2018-06-01/runtime/invocation/'
  for (;;) {
    const next = await fetch(base + 'next')
    const event = await next.json()
    const body = await (async () => ${expression})()
    await fetch(base + next.headers.get('lambda-runtime-aws-request-id') + '/response', { method: 'POST', body })
  }`

/** A module that says which it is: the word of its image, the deployment of its environment. */
export const pushWord = (fixtures: LambdaFixtures, word: string, repository = 'modules/words') =>
  pushProgram(
    fixtures.registry,
    repository,
    moduleSource(`JSON.stringify({ statusCode: 200, body: '${word} ' + process.env.PLATFORM_DEPLOYMENT_ID })`),
  )

/** Which module it is that answers. */
export const readWord = async (runtime: ModuleRuntime, deployment: Deployment) =>
  textOf(await runtime.request(deployment, { method: 'GET', path: '/' }, limits))

/** What there is of a function, with descriptions. */
export const versionsOf = async ({ client }: LambdaFixtures, FunctionName = 'mod-words') => {
  const { Versions = [] } = await client.send(new ListVersionsByFunctionCommand({ FunctionName }))
  return Versions.map(({ Version, Description }) => `${Version} ${Description}`)
}

/** The id and the image that a version was published with. */
export async function lambdaResourcesOf({ client }: LambdaFixtures, { handle }: Deployment) {
  const [FunctionName, Qualifier] = handle.split(':')
  const made = await client.send(new GetFunctionConfigurationCommand({ FunctionName, Qualifier }))
  return [made.Environment?.Variables?.['PLATFORM_DEPLOYMENT_ID'], `sha256:${made.CodeSha256}`]
}
