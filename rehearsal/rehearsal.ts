import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { InvokeCommand } from '@aws-sdk/client-lambda'
import { functionNames } from '@platform/core/function-names'
import { clientSettings } from '@platform/local/aws-environment'
import type { Log } from '@platform/local/log'
import { clientOf } from '@platform/core/registries'
import { type Cloud, startCloud } from './cloud/cloud.ts'
import { startTriggers } from './cloud/triggers.ts'
import { type DeployedFunction, functionsOf } from './graph/functions.ts'
import { graphOf, ofType } from './graph/graph.ts'

/** A deployment on this machine: the resources of the graph, the built functions, and everything that calls them. */
export interface Rehearsal extends AsyncDisposable {
  /** Where the API is. */
  url: string
  cloud: Cloud
  functions: readonly DeployedFunction[]
  /** What the deployment says one gets the initial admin token with, done. Undefined once the setup is complete. */
  initialAdminToken: () => Promise<string | undefined>
}

export interface RehearsalOptions {
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
  /** Hears each step as it begins. */
  onStep?: (step: string) => void
}

/** Evaluates the configuration, makes what it asks for in the stand-ins, begins the platform and opens its gateway. */
export async function startRehearsal(options: RehearsalOptions): Promise<Rehearsal> {
  const { stage, port, environment, functionsDir, onOutput, log, onStep = () => {} } = options
  await using parts = new AsyncDisposableStack()
  onStep('The configuration is evaluated')
  const graph = await graphOf(stage, environment)
  const functions = functionsOf(graph, functionNames)
  onStep(`${graph.resources.length} resources are made`)
  const cloud = parts.use(await startCloud({ graph, functions, codeDir: functionsDir, registry: clientOf, onOutput }))
  const triggers = parts.use(await startTriggers(cloud, graph, port, log))
  onStep('The platform begins')
  for (const { inputs } of ofType(graph, 'aws:lambda/invocation:Invocation')) await begin(cloud, inputs)
  const moved = parts.move()
  return {
    url: triggers.url,
    cloud,
    functions,
    initialAdminToken: () => readSecret(cloud.secretsUrl, String(graph.outputs['initialAdminTokenSecret'])),
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

async function readSecret(url: string, SecretId: string): Promise<string | undefined> {
  const client = new SecretsManagerClient(clientSettings(url, 'deployer'))
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId }))).SecretString
  } finally {
    client.destroy()
  }
}
