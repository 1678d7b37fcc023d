import { functionNames } from '@platform/core/updates/function-names'
import type { Log } from '@platform/local/log'
import { type Cloud, startCloud } from './aws/cloud.ts'
import { startExternalFixtures } from './aws/external-fixtures.ts'
import { invokeFunction } from './aws/invoke.ts'
import { startTriggers } from './aws/triggers.ts'
import { functionsOf } from './graph/functions.ts'
import { graphOf, ofType } from './graph/graph.ts'
import { readSecret } from './secret.ts'

export type Simulator = Awaited<ReturnType<typeof startSimulator>>

export interface SimulatorOptions {
  stage: string
  port: number
  environment: Record<string, string>
  functionsDir: string
  onOutput: (functionName: string, text: string) => void
  log: Log
  hasClocks?: boolean
  /** Changes resources before the platform starts, like an operator who restores a backup. */
  beforeBootstrap?: (cloud: Cloud) => Promise<void>
  /** Receives each completed step; an error that it throws aborts the start. */
  onStep?: (step: string) => void
}

export async function startSimulator(options: SimulatorOptions) {
  const { stage, port, functionsDir, onOutput, log, hasClocks = true, onStep = () => {}, beforeBootstrap } = options
  await using resources = new AsyncDisposableStack()
  const { environment, releases } = resources.use(await startExternalFixtures(options.environment, log))
  const graph = await graphOf(stage, environment)
  const functions = functionsOf(graph, functionNames)
  onStep(`Evaluated the configuration: stage ${stage} has ${graph.resources.length} resources`)
  const cloud = resources.use(await startCloud({ graph, functions, codeDir: functionsDir, onOutput, log }))
  onStep(`Deployed ${functions.length} functions`)
  const triggers = resources.use(await startTriggers(cloud, graph, { port, hasClocks, log }))
  /** Runs a scheduled function now, by its name in the contract. */
  const tick = (name: string) =>
    triggers.tick(functions.find((deployed) => deployed.name === name)?.functionName ?? name)
  /** Invokes bootstrap, like each deployment that changes something. Rejects if bootstrap fails. */
  const bootstrap = async () => {
    for (const { inputs } of ofType(graph, 'aws:lambda/invocation:Invocation')) {
      const { functionName, input, qualifier } = inputs
      await invokeFunction(cloud.lambda, String(functionName), JSON.parse(String(input)), String(qualifier))
    }
  }
  onStep(`The gateway listens at ${triggers.url}`)
  await beforeBootstrap?.(cloud)
  await bootstrap()
  onStep('The platform has started')
  // The first scheduled scan of the catalog would come minutes later.
  if (hasClocks) await tick('schedule/catalog')
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
    tick,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
