import {
  type FunctionConfiguration,
  ListFunctionsCommand,
  LambdaClient,
  type LambdaClientConfig,
} from '@aws-sdk/client-lambda'
import { findFunction, findVersions, type ModuleLambdaContext } from './control.ts'
import { changeFailure } from './errors.ts'
import { deploymentIdIn, deploymentIn, functionNameOf } from './names.ts'
import type { DeploymentStatus, ModuleRuntime } from '../port.ts'
import { deployFunction } from './deploy.ts'
import { removeDeployment } from './remove.ts'
import { lambdaRequest } from './request.ts'

/**
 * Lists all deployments, including unpublished ones. Reports no crashes, because every invocation may have a new
 * sandbox. Throws `RuntimeError`.
 */
async function listDeployments(control: ModuleLambdaContext): Promise<DeploymentStatus[]> {
  try {
    const names = await listFunctionNames(control)
    const statuses = await Promise.all(names.map((name) => deploymentsOf(control, name)))
    return statuses.flat()
  } catch (error) {
    throw changeFailure(error)
  }
}

/** Other functions may share the prefix. `statusOf` ignores those whose names are not derived from module ids. */
async function listFunctionNames({ client, prefix }: ModuleLambdaContext): Promise<string[]> {
  const names: string[] = []
  let Marker: string | undefined
  do {
    const response = await client.send(new ListFunctionsCommand({ Marker }))
    for (const { FunctionName = '' } of response.Functions ?? []) {
      if (FunctionName.startsWith(`${prefix}-`)) names.push(FunctionName)
    }
    Marker = response.NextMarker
  } while (Marker !== undefined)
  return names
}

async function deploymentsOf(control: ModuleLambdaContext, functionName: string): Promise<DeploymentStatus[]> {
  const { latest, published } = await findVersions(control, functionName)
  const isUnpublished =
    latest !== undefined && !published.some((version) => deploymentIdIn(version) === deploymentIdIn(latest))
  const statuses = await Promise.all(
    [...(isUnpublished ? [latest] : []), ...published].map((each) => statusOf(control, each)),
  )
  return statuses.filter((status) => status !== undefined)
}

async function statusOf(
  control: ModuleLambdaContext,
  listed: FunctionConfiguration,
): Promise<DeploymentStatus | undefined> {
  const deployment = deploymentIn(listed)
  if (deployment === undefined || functionNameOf(control.prefix, deployment.moduleId) !== listed.FunctionName) {
    return undefined
  }
  const state = await findFunction(control, listed.FunctionName, listed.Version)
  if (state === undefined) return undefined
  const { State, StateReason = 'The function failed.' } = state.configuration
  if (State === 'Failed') return { deployment, state: 'failed', crashes: 0, lastCrash: StateReason }
  const isReady = state.configuration.Version !== '$LATEST' && State !== 'Pending'
  return { deployment, state: isReady ? 'running' : 'restarting', crashes: 0 }
}

export interface LambdaSettings
  extends
    Pick<ModuleLambdaContext, 'prefix' | 'role' | 'images' | 'tokenOf'>,
    Partial<Pick<ModuleLambdaContext, 'memoryMegabytes' | 'logGroup' | 'timeoutSeconds' | 'pollMs' | 'timeoutMs'>> {
  /** Endpoint and credentials of Lambda; from the environment by default. */
  aws?: LambdaClientConfig
}

/**
 * Runs modules as AWS Lambda functions: one function for each module, one version for each deployment. A deployment may
 * have several sandboxes or none: each configures itself at initialization and starts before its first request.
 */
export function lambdaRuntime({ aws = {}, ...settings }: LambdaSettings): ModuleRuntime {
  const client = new LambdaClient({ requestHandler, ...aws })
  const defaults = { memoryMegabytes: 256, logGroup: '', timeoutSeconds: 60, pollMs: 1000, timeoutMs: 120_000 }
  const control: ModuleLambdaContext = { ...defaults, ...settings, client }
  return {
    deploy: (spec) => deployFunction(control, spec),
    request: lambdaRequest(aws, control.tokenOf),
    remove: (deployment) => removeDeployment(control, deployment),
    list: () => listDeployments(control),
  }
}

/** The creation of a function takes seconds, not milliseconds. */
const requestHandler = { connectionTimeout: 1000, requestTimeout: 20_000, throwOnRequestTimeout: true } as const
