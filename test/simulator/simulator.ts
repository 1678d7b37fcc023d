import { InvokeCommand } from '@aws-sdk/client-lambda'
import { functionNames } from '@platform/core/updates/function-names'
import type { Log } from '@platform/local/log'
import { type Cloud, startCloud } from './aws/cloud.ts'
import { type Releases, startExternalFixtures } from './aws/external-fixtures.ts'
import { startTriggers } from './aws/triggers.ts'
import { type DeployedFunction, functionsOf } from './graph/functions.ts'
import { graphOf, ofType } from './graph/graph.ts'
import { readSecret } from './secret.ts'

/** A deployment on this machine: the resources of the graph, the built functions, and their triggers. */
export interface Simulator extends AsyncDisposable {
  url: string
  cloud: Cloud
  functions: readonly DeployedFunction[]
  releases: Releases
  initialAdminTokenSecret: string
  /** Runs the command that the deployment names for the initial admin token. Undefined once setup is complete. */
  initialAdminToken: () => Promise<string | undefined>
  /** Runs bootstrap, like each deployment that changes something. Rejects when it fails. */
  begin: () => Promise<void>
  /** Runs a scheduled function now, by its AWS name. */
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
  begins?: boolean
  /** Receives each completed step; a throw aborts the start. */
  onStep?: (step: string) => void
}

/** Evaluates the configuration, creates its resources in the emulators, runs bootstrap and opens the gateway. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { stage, port, environment, functionsDir, onOutput, log, hasClocks = true, onStep = () => {} } = options
  await using parts = new AsyncDisposableStack()
  const supply = parts.use(await startExternalFixtures(environment, log))
  const graph = await graphOf(stage, supply.environment)
  const functions = functionsOf(graph, functionNames)
  onStep(`Evaluated the configuration: stage ${stage} has ${graph.resources.length} resources`)
  const cloud = parts.use(await startCloud({ graph, functions, codeDir: functionsDir, onOutput, log }))
  onStep(`Deployed ${functions.length} functions`)
  const triggers = parts.use(await startTriggers(cloud, graph, { port, hasClocks, log }))
  const beginAll = async () => {
    for (const { inputs } of ofType(graph, 'aws:lambda/invocation:Invocation')) await begin(cloud, inputs)
  }
  onStep(`The gateway listens at ${triggers.url}`)
  if (options.begins !== false) {
    await beginAll()
    onStep('The platform has started')
  }
  // Scan the catalog now: its schedule would take minutes.
  const catalog = functions.find(({ name }) => name === 'schedule/catalog')
  if (hasClocks && catalog !== undefined) await triggers.tick(catalog.functionName)
  const initialAdminTokenSecret = String(graph.outputs['initialAdminTokenSecret'])
  const moved = parts.move()
  return {
    url: triggers.url,
    cloud,
    functions,
    releases: supply.releases,
    initialAdminTokenSecret,
    initialAdminToken: () => readSecret(cloud, initialAdminTokenSecret),
    begin: beginAll,
    tick: triggers.tick,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

async function begin({ lambda }: Cloud, { functionName, qualifier, input }: Record<string, unknown>): Promise<void> {
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
