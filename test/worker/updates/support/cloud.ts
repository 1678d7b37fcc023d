import { Readable } from 'node:stream'
import {
  CreateAliasCommand,
  CreateFunctionCommand,
  GetAliasCommand,
  GetFunctionConfigurationCommand,
  InvokeCommand,
  LambdaClient,
  type LambdaClientConfig,
  ListVersionsByFunctionCommand,
  PublishVersionCommand,
  UpdateAliasCommand,
  UpdateFunctionCodeCommand,
  waitUntilFunctionUpdatedV2,
  waitUntilPublishedVersionActive,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda'
import type { InstalledRelease } from '@platform/core/updates/record'
import { lambdaAlias } from '@platform/worker/updates/target/lambda-alias'
import type { UpdateTarget } from '@platform/worker/updates/target/port'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { zipSync } from 'fflate'
import { startLambda } from '../../../simulator/lambda/start.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import type { startFeed } from './feed.ts'
import { type QueuedUpdate, jobOf, advanceOnHealthCheck } from './updating.ts'

const polling = { minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }
const [role, alias] = ['arn:aws:iam::000000000000:role/platform', 'live']

export const fileOf = (version: string, body = '', prologue = ''): string => `${prologue}
export const handler = async (event) => {
  if (event.platformProbe) return { version: '${version}' }
  ${body}
  return { statusCode: 200, body: '${version}' }
}
`

const zipOf = (text: string): Uint8Array =>
  zipSync({ 'index.mjs': Buffer.from(text) }, { mtime: new Date('2026-01-01T00:00:00') })

interface HttpRequest {
  method: string
  path: string
  query: Record<string, string>
  body: Uint8Array
}

interface TargetOptions {
  /** Intercepts each call to Lambda; `send` executes it. */
  intercept?: (request: HttpRequest, send: () => Promise<any>) => Promise<any>
  maxAttempts?: number
  names?: readonly string[]
  /** Runs functions in sandboxes. By default, invocations return the response of a working function. */
  hasSandboxes?: boolean
}

export async function startCloud() {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const lambda = await startLambda({ zipDir: folder, settleMs: 5 })
  starting.defer(() => lambda.close())
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const aws: LambdaClientConfig = { endpoint: lambda.url, region: 'eu-central-1', credentials }
  const client = new LambdaClient(aws)
  /** The platform version that each deployed Lambda version (`name:number`) reports. */
  const reportedVersions = new Map<string, string | undefined>()
  let count = 0

  async function respond({ path, query, body }: HttpRequest) {
    const [, FunctionName = ''] = /\/functions\/([^/]+)\/invocations$/.exec(path) ?? []
    const { Qualifier } = query
    const { Description } = await client.send(new GetFunctionConfigurationCommand({ FunctionName, Qualifier }))
    const version = Description?.split(' ')[1] ?? reportedVersions.get(`${FunctionName}:${Qualifier}`)
    const isProbe = Buffer.from(body).toString().includes('platformProbe')
    const text = JSON.stringify(isProbe ? ((version && { version }) ?? null) : { statusCode: 200 })
    return { response: { statusCode: 200, headers: {}, body: Readable.from([Buffer.from(text)]) } }
  }

  async function deploy(version: string, names: readonly string[]) {
    const prefix = `platform${++count}`
    const cloudName = (name: string) => `${prefix}-${name.replaceAll('/', '-')}`
    await Promise.all(names.map((name) => create(cloudName(name), version)))
    const target = ({ intercept, names: all = names, hasSandboxes, ...more }: TargetOptions = {}): UpdateTarget => {
      const handler = new NodeHttpHandler()
      const handle = (request: any, options: any) => {
        const isStubbed = hasSandboxes !== true && request.path.endsWith('/invocations')
        const send = () => (isStubbed ? respond(request) : handler.handle(request, options))
        return intercept ? intercept(request, send) : send()
      }
      const requestHandler = Object.assign(Object.create(handler), { handle })
      const target = lambdaAlias({ prefix, alias, names: all, pollMs: 10, aws: { ...aws, ...more, requestHandler } })
      const invoke: UpdateTarget['invoke'] = async (...input) => {
        await advanceOnHealthCheck({ name: 'invoke', input })
        return target.invoke(...input)
      }
      return { ...target, invoke }
    }
    const aliasOf = async (name: string) => {
      const command = new GetAliasCommand({ FunctionName: cloudName(name), Name: alias })
      const { FunctionVersion, RoutingConfig } = await client.send(command)
      return { main: FunctionVersion, weights: RoutingConfig?.AdditionalVersionWeights ?? {} }
    }
    const readAliases = async () =>
      new Set(await Promise.all(names.map(async (name) => JSON.stringify(await aliasOf(name)))))
    const listVersions = async (name: string) => {
      const { Versions = [] } = await client.send(new ListVersionsByFunctionCommand({ FunctionName: cloudName(name) }))
      return Versions.slice(1).map(({ Version, Description }) => [Version, Description?.split(' ')[1] ?? 'deployed'])
    }
    const redeploy = async (name: string, file: string): Promise<void> => {
      const FunctionName = cloudName(name)
      await client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile: zipOf(file) }))
      await waitUntilFunctionUpdatedV2({ client, ...polling }, { FunctionName })
      const { Version: FunctionVersion = '' } = await client.send(new PublishVersionCommand({ FunctionName }))
      await waitUntilPublishedVersionActive({ client, ...polling }, { FunctionName, Qualifier: FunctionVersion })
      reportedVersions.set(`${FunctionName}:${FunctionVersion}`, /version: '([\d.]+)'/.exec(file)?.[1])
      const RoutingConfig = { AdditionalVersionWeights: {} }
      await client.send(new UpdateAliasCommand({ FunctionName, Name: alias, FunctionVersion, RoutingConfig }))
    }
    const request = async (name: string): Promise<string> => {
      const Payload = Buffer.from(JSON.stringify({ rawPath: '/' }))
      const command = new InvokeCommand({ FunctionName: cloudName(name), Qualifier: alias, Payload })
      const response = JSON.parse(Buffer.from((await client.send(command)).Payload ?? []).toString())
      if (response.statusCode !== 200) throw new Error(JSON.stringify(response))
      return response.body
    }
    const deactivate = (name: string, version: string) => lambda.deactivate(cloudName(name), version)
    return { names, target, aliasOf, aliases: readAliases, versions: listVersions, redeploy, deactivate, request }
  }

  async function create(FunctionName: string, version: string): Promise<void> {
    const Code = { ZipFile: zipOf(fileOf(version)) }
    const configuration = { Runtime: 'nodejs24.x', Handler: 'index.handler', Role: role, Timeout: 2 } as const
    await client.send(new CreateFunctionCommand({ FunctionName, Code, ...configuration }))
    await waitUntilFunctionActiveV2({ client, ...polling }, { FunctionName })
    const { Version: FunctionVersion } = await client.send(new PublishVersionCommand({ FunctionName }))
    await waitUntilPublishedVersionActive({ client, ...polling }, { FunctionName, Qualifier: FunctionVersion })
    reportedVersions.set(`${FunctionName}:${FunctionVersion}`, version)
    await client.send(new CreateAliasCommand({ FunctionName, Name: alias, FunctionVersion }))
  }

  starting.defer(() => client.destroy())
  const resources = starting.move()
  return { deploy, close: () => resources.disposeAsync() }
}

export type Platform = Awaited<ReturnType<Awaited<ReturnType<typeof startCloud>>['deploy']>>

export const deployed: InstalledRelease = { version: '1.0.0' }

export const at = (main: string, weights: Record<string, number> = {}) => new Set([JSON.stringify({ main, weights })])

export async function outcomeOf(update: QueuedUpdate): Promise<string> {
  const { status, result } = await jobOf(update)
  return `${status}: ${result?.output}`
}

export function releasesFrom({ released }: Pick<Awaited<ReturnType<typeof startFeed>>, 'released'>) {
  let count = 0
  return (names: readonly string[], files: Partial<Record<string, string>> = {}): Promise<InstalledRelease> => {
    const version = `1.${++count}.0`
    const functions = Object.fromEntries(
      names.map((name) => [name, files[name]?.replaceAll('VERSION', version) ?? fileOf(version)]),
    )
    return released(version, { functions })
  }
}

export const stagedOf = (release: InstalledRelease, functionNames: readonly string[]) => ({
  ...release,
  functionNames,
  fetchFunction: async () => zipOf(fileOf(release.version)),
})
