import { InvokeCommand } from '@aws-sdk/client-lambda'
import { functionNames } from '@platform/core/updates/function-names'
import type { Log } from '@platform/local/log'
import { type Cloud, startCloud } from './aws/cloud.ts'
import { type Releases, startExternalFixtures } from './aws/external-fixtures.ts'
import { startTriggers } from './aws/triggers.ts'
import { type DeployedFunction, functionsOf } from './graph/functions.ts'
import { graphOf, ofType } from './graph/graph.ts'
import { readSecret } from './secret.ts'

/** A deployment on this machine: the resources of the graph, the built functions, and everything that calls them. */
export interface Simulator extends AsyncDisposable {
  /** Where the API is. */
  url: string
  cloud: Cloud
  functions: readonly DeployedFunction[]
  /** Where the deployment looks for releases. */
  releases: Releases
  /** Name of the secret that holds the initial admin token. */
  initialAdminTokenSecret: string
  /** What the deployment says one gets the initial admin token with, done. Undefined once the setup is complete. */
  initialAdminToken: () => Promise<string | undefined>
  /** Begins the platform, as each deployment does that changes something. Rejects when that fails. */
  begin: () => Promise<void>
  /** Runs a function of a clock at once, by AWS's name of it. */
  tick: (functionName: string) => Promise<void>
}

export interface SimulatorOptions {
  stage: string
  /** Of the gateway; 0 picks one. */
  port: number
  /** What an operator sets for the deployment. */
  environment: Record<string, string>
  /** Folder of the built functions. */
  functionsDir: string
  /** Hears what functions write. */
  onOutput: (functionName: string, text: string) => void
  /** Hears what goes wrong where nobody is answered. */
  log: Log
  /** False where clocks run only when they are told to. */
  hasClocks?: boolean
  /** False where the platform begins only when it is told to. */
  begins?: boolean
  /** Hears of each step that is done; what it throws breaks off the start. */
  onStep?: (step: string) => void
}

/** Evaluates the configuration, makes what it asks for in the stand-ins, begins the platform and opens its gateway. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { stage, port, environment, functionsDir, onOutput, log, hasClocks = true, onStep = () => {} } = options
  await using parts = new AsyncDisposableStack()
  const supply = parts.use(await startExternalFixtures(environment, log))
  const graph = await graphOf(stage, supply.environment)
  const functions = functionsOf(graph, functionNames)
  onStep(`The configuration is evaluated: stage ${stage} has ${graph.resources.length} resources`)
  const cloud = parts.use(await startCloud({ graph, functions, codeDir: functionsDir, onOutput, log }))
  onStep(`${functions.length} functions are deployed`)
  const triggers = parts.use(await startTriggers(cloud, graph, { port, hasClocks, log }))
  const beginAll = async () => {
    for (const { inputs } of ofType(graph, 'aws:lambda/invocation:Invocation')) await begin(cloud, inputs)
  }
  onStep(`The gateway is open at ${triggers.url}`)
  if (options.begins !== false) {
    await beginAll()
    onStep('The platform has begun')
  }
  // Its clock would do so within minutes: whoever looks earlier would find an empty catalog.
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

/** As a deployment does: what fails fails it. */
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
