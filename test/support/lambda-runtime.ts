import {
  GetFunctionConfigurationCommand,
  LambdaClient,
  type LambdaClientConfig,
  ListVersionsByFunctionCommand,
} from '@aws-sdk/client-lambda'
import type { Deployment } from '@platform/core/modules/deployment'
import { type LambdaOptions, startLambda } from '../simulator/lambda/start.ts'
import { lambdaRuntime, type LambdaSettings } from '@platform/worker/runtimes/lambda/runtime'
import { ociTarget } from '@platform/worker/runtimes/lambda/image'
import type { ModuleRuntime } from '@platform/worker/runtimes/port'
import type { RegistryClient } from '@platform/oci/client'
import { currentPlatform } from '@platform/oci/image'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { deploymentSpecOf, limits, textOf } from './local-runtime.ts'
import { memoryRegistry } from './memory-registry.ts'
import { pushProgram } from './module-image.ts'
import { temporaryFolder } from './temporary-folder.ts'

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

export type InterceptCall = (call: { method: string; path: string }, send: () => Promise<any>) => Promise<any>

export interface LambdaOptionsInput extends LambdaOptions {
  settings?: Partial<LambdaSettings>
  /** The source registry of the modules; by default a registry in memory. */
  source?: RegistryClient
}

export async function startLambdaFixtures({
  settings: commonSettings = {},
  source,
  ...options
}: LambdaOptionsInput = {}) {
  const folder = await temporaryFolder()
  const [registry, target] = [memoryRegistry('registry.test'), memoryRegistry('lambda.test')]
  let output = ''
  const lambda = await startLambda({
    images: { registry: () => target, storeDir: folder.path },
    settleMs: 0,
    onOutput: (_, text) => {
      output += text
    },
    ...options,
  })
  const aws = { endpoint: lambda.url, region: 'eu-central-1', credentials }
  const another = (settings: Partial<LambdaSettings> = {}, intercept?: InterceptCall): ModuleRuntime =>
    lambdaRuntime({
      aws: intercept === undefined ? aws : { ...aws, ...withInterceptor(intercept) },
      prefix: 'mod',
      role: 'arn:aws:iam::000000000000:role/modules',
      images: {
        source: () => source ?? registry,
        target: ociTarget(target, 'platform/modules'),
        platform: currentPlatform(),
      },
      tokenOf: async (id) => `token of ${id}`,
      timeoutSeconds: 20,
      pollMs: 2,
      ...commonSettings,
      ...settings,
    })
  const client = new LambdaClient(aws)
  const close = async () => {
    client.destroy()
    await lambda.close()
    await folder[Symbol.asyncDispose]()
  }
  const runtime = another()
  return { runtime, lambda, client, registry, target, output: () => output, another, [Symbol.asyncDispose]: close }
}

export type LambdaFixtures = Awaited<ReturnType<typeof startLambdaFixtures>>

function withInterceptor(intercept: InterceptCall): LambdaClientConfig {
  const handler = new NodeHttpHandler()
  const handle: NodeHttpHandler['handle'] = (request, options) =>
    intercept({ method: request.method, path: request.path }, () => handler.handle(request, options))
  return { maxAttempts: 1, requestHandler: Object.assign(Object.create(handler), { handle }) }
}

/** Returns the source of a Lambda runtime client that evaluates an expression of `event` and responds with its text. */
export const moduleSource = (expression: string): string => `
  const base = 'http://' + process.env.AWS_LAMBDA_RUNTIME_API + '/2018-06-01/runtime/invocation/'
  for (;;) {
    const next = await fetch(base + 'next')
    const event = await next.json()
    const body = await (async () => ${expression})()
    await fetch(base + next.headers.get('lambda-runtime-aws-request-id') + '/response', { method: 'POST', body })
  }`

export const pushWord = (fixtures: LambdaFixtures, word: string, repository = 'modules/words') =>
  pushProgram(
    fixtures.registry,
    repository,
    moduleSource(`JSON.stringify({ statusCode: 200, body: '${word} ' + process.env.PLATFORM_DEPLOYMENT_ID })`),
  )

export const wordSpec = async (fixtures: LambdaFixtures, word: string, repository?: string) =>
  deploymentSpecOf(await pushWord(fixtures, word, repository))

export const deployWord = async (fixtures: LambdaFixtures, word: string, repository?: string) =>
  fixtures.runtime.deploy(await wordSpec(fixtures, word, repository))

export const readWord = async (runtime: ModuleRuntime, deployment: Deployment) =>
  textOf(await runtime.request(deployment, { method: 'GET', path: '/' }, limits))

export const deploymentsOf = async (runtime: ModuleRuntime) =>
  (await runtime.list()).map(({ deployment }) => deployment)

export const versionsOf = async ({ client }: LambdaFixtures, FunctionName = 'mod-words') => {
  const { Versions = [] } = await client.send(new ListVersionsByFunctionCommand({ FunctionName }))
  return Versions.map(({ Version, Description }) => `${Version} ${Description}`)
}

export async function lambdaResourcesOf({ client }: LambdaFixtures, { handle }: Deployment) {
  const [FunctionName, Qualifier] = handle.split(':')
  const version = await client.send(new GetFunctionConfigurationCommand({ FunctionName, Qualifier }))
  return [version.Environment?.Variables?.['PLATFORM_DEPLOYMENT_ID'], `sha256:${version.CodeSha256}`]
}
