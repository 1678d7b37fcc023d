import {
  CreateAliasCommand,
  CreateFunctionCommand,
  GetAliasCommand,
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
import { type InstalledRelease } from '@platform/core/updates/record'
import { startLambda } from '../../../simulator/lambda/start.ts'
import { lambdaAlias } from '@platform/worker/updates/target/lambda-alias'
import { type UpdateTarget } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { type startFeed } from './feed.ts'
import { type QueuedUpdate, jobOf, advanceOnHealthCheck } from './updating.ts'

/** The platform on Lambda: functions as a deployment makes them, each with its alias. */

const often = { minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }
const [role, alias] = ['arn:aws:iam::000000000000:role/platform', 'live']

/** The file of a function that says its version, and answers requests by some code. */
export const fileOf = (version: string, more = '', first = ''): string => `${first}
let count = 0
export const handler = async (event) => {
  if (event.platformProbe) return { version: '${version}' }
  count++
  ${more}
  return { statusCode: 200, body: '${version}' }
}
`

export const zipOf = (text: string): Uint8Array =>
  zipSync({ 'index.mjs': Buffer.from(text) }, { mtime: new Date('2026-01-01T00:00:00') })

export async function startCloud(options: { random?: () => number } = {}) {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  const lambda = await startLambda({ zipDir: folder, settleMs: 5, ...options })
  starting.defer(() => lambda.close())
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const aws: LambdaClientConfig = { endpoint: lambda.url, region: 'eu-central-1', credentials }
  const client = new LambdaClient(aws)
  let count = 0

  /** Deploys functions under names of their own. */
  async function deploy(version: string, names: readonly string[]) {
    const prefix = `platform${++count}`
    const cloudName = (name: string) => `${prefix}-${name.replaceAll('/', '-')}`
    await Promise.all(names.map((name) => create(cloudName(name), version)))
    /** The target, as a try of an update has it; time passes while it asks. */
    const target = (more: LambdaClientConfig = {}, all = names): UpdateTarget => {
      const made = lambdaAlias({ prefix, alias, names: all, pollMs: 10, aws: { ...aws, ...more } })
      const invoke: UpdateTarget['invoke'] = async (...input) => {
        await advanceOnHealthCheck({ name: 'invoke', input })
        return made.invoke(...input)
      }
      return { ...made, invoke }
    }
    const aliasOf = async (name: string) => {
      const named = { FunctionName: cloudName(name), Name: alias }
      const { FunctionVersion, RoutingConfig } = await client.send(new GetAliasCommand(named))
      return { main: FunctionVersion, weights: RoutingConfig?.AdditionalVersionWeights ?? {} }
    }
    /** What every alias leads to, each once. */
    const places = async () =>
      new Set(await Promise.all(names.map(async (name) => JSON.stringify(await aliasOf(name)))))
    const versions = async (name: string) => {
      const { Versions = [] } = await client.send(new ListVersionsByFunctionCommand({ FunctionName: cloudName(name) }))
      return Versions.slice(1).map(({ Version, Description }) => [Version, Description?.split(' ')[1] ?? 'deployed'])
    }
    /** Somebody deploys one function anew, and leads its alias there. */
    const deployOver = async (name: string, file: string): Promise<string> => {
      const FunctionName = cloudName(name)
      await client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile: zipOf(file) }))
      await waitUntilFunctionUpdatedV2({ client, ...often }, { FunctionName })
      const { Version: FunctionVersion = '' } = await client.send(new PublishVersionCommand({ FunctionName }))
      await waitUntilPublishedVersionActive({ client, ...often }, { FunctionName, Qualifier: FunctionVersion })
      const RoutingConfig = { AdditionalVersionWeights: {} }
      await client.send(new UpdateAliasCommand({ FunctionName, Name: alias, FunctionVersion, RoutingConfig }))
      return FunctionVersion
    }
    /** What a caller of the platform hears; rejects where that is an error. */
    const ask = async (name: string): Promise<string> => {
      const Payload = Buffer.from(JSON.stringify({ rawPath: '/' }))
      const answer = await client.send(new InvokeCommand({ FunctionName: cloudName(name), Qualifier: alias, Payload }))
      const said = JSON.parse(Buffer.from(answer.Payload ?? []).toString())
      if (said.statusCode !== 200) throw new Error(JSON.stringify(said))
      return said.body
    }
    /** Nobody has called a version for weeks. */
    const fallAsleep = (name: string, version: string) => lambda.deactivate(cloudName(name), version)
    return { names, target, aliasOf, places, versions, deployOver, fallAsleep, ask }
  }

  async function create(FunctionName: string, version: string): Promise<void> {
    const Code = { ZipFile: zipOf(fileOf(version)) }
    const runs = { Runtime: 'nodejs24.x', Handler: 'index.handler', Role: role, Timeout: 2 } as const
    await client.send(new CreateFunctionCommand({ FunctionName, Code, ...runs }))
    await waitUntilFunctionActiveV2({ client, ...often }, { FunctionName })
    const { Version: FunctionVersion } = await client.send(new PublishVersionCommand({ FunctionName }))
    await waitUntilPublishedVersionActive({ client, ...often }, { FunctionName, Qualifier: FunctionVersion })
    await client.send(new CreateAliasCommand({ FunctionName, Name: alias, FunctionVersion }))
  }

  starting.defer(() => client.destroy())
  const started = starting.move()
  return { lambda, client, deploy, close: () => started.disposeAsync() }
}

export type Platform = Awaited<ReturnType<Awaited<ReturnType<typeof startCloud>>['deploy']>>

/** What stands in the cloud before any update. */
export const deployed: InstalledRelease = { version: '1.0.0' }

/** What all aliases lead to: one version, and nothing else. */
export const at = (main: string) => new Set([JSON.stringify({ main, weights: {} })])

/** How an update has ended, for people. */
export async function outcomeOf(accepted: QueuedUpdate): Promise<string> {
  const { status, result } = await jobOf(accepted)
  return `${status}: ${result?.output}`
}

/** Pushes releases, each of a newer version; `more` is what some of their functions are instead of good ones. */
export function releasesFrom({ released }: Pick<Awaited<ReturnType<typeof startFeed>>, 'released'>) {
  let count = 0
  return (names: readonly string[], more: Partial<Record<string, string>> = {}): Promise<InstalledRelease> => {
    const version = `1.${++count}.0`
    const functions = Object.fromEntries(
      names.map((name) => [name, more[name]?.replaceAll('VERSION', version) ?? fileOf(version)]),
    )
    return released(version, { functions })
  }
}
