import { InvokeCommand } from '@aws-sdk/client-lambda'
import { functionNames } from '@platform/core/updates/function-names'
import type { Log } from '@platform/local/log'
import { type Cloud, startCloud } from './aws/cloud.ts'
import { type Releases, startExternalFixtures } from './aws/external-fixtures.ts'
import { startTriggers } from './aws/triggers.ts'
import { type DeployedFunction, functionsOf } from './graph/functions.ts'
import { graphOf, ofType } from './graph/graph.ts'
import { readSecret } from './secret.ts'

export interface Simulator extends AsyncDisposable {
  url: string
  cloud: Cloud
  functions: readonly DeployedFunction[]
  releases: Releases
  initialAdminTokenSecret: string
  initialAdminToken: () => Promise<string | undefined>
  /** Runs bootstrap, like each deployment that changes something. Rejects when it fails. */
  bootstrap: () => Promise<void>
  tick: (functionName: string) => Promise<void>
}

export interface SimulatorOptions {
  stage: string
  port: number
  environment: Record<string, string>
  functionsDir: string
  onOutput: (functionName: string, text: string) => void
  log: Log
  hasClocks?: boolean
  /** Receives each completed step; a throw aborts the start. */
  onStep?: (step: string) => void
}

export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { stage, port, functionsDir, onOutput, log, hasClocks = true, onStep = () => {} } = options
  await using resources = new AsyncDisposableStack()
  const { environment, releases } = resources.use(await startExternalFixtures(options.environment, log))
  const graph = await graphOf(stage, environment)
  const functions = functionsOf(graph, functionNames)
  onStep(`Evaluated the configuration: stage ${stage} has ${graph.resources.length} resources`)
  const cloud = resources.use(await startCloud({ graph, functions, codeDir: functionsDir, onOutput, log }))
  onStep(`Deployed ${functions.length} functions`)
  const triggers = resources.use(await startTriggers(cloud, graph, { port, hasClocks, log }))
  const bootstrap = async () => {
    for (const { inputs } of ofType(graph, 'aws:lambda/invocation:Invocation')) await invokeOnce(cloud, inputs)
  }
  onStep(`The gateway listens at ${triggers.url}`)
  await bootstrap()
  onStep('The platform has started')
  // The schedule of the catalog would take minutes.
  const catalog = functions.find(({ name }) => name === 'schedule/catalog')
  if (hasClocks && catalog !== undefined) await triggers.tick(catalog.functionName)
  const initialAdminTokenSecret = String(graph.outputs['initialAdminTokenSecret'])
  const started = resources.move()
  return {
    url: triggers.url,
    cloud,
    functions,
    releases,
    initialAdminTokenSecret,
    initialAdminToken: () => readSecret(cloud, initialAdminTokenSecret),
    bootstrap,
    tick: triggers.tick,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

async function invokeOnce({ lambda }: Cloud, { functionName, qualifier, input }: Record<string, unknown>) {
  const { FunctionError, Payload } = await lambda.send(
    new InvokeCommand({
      FunctionName: String(functionName),
      Qualifier: String(qualifier),
      Payload: Buffer.from(String(input)),
    }),
  )
  if (FunctionError === undefined) return
  throw new Error(`${String(functionName)} failed: ${Buffer.from(Payload ?? []).toString()}`)
}
