import { LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { type ModuleControl } from './control.ts'
import { deployFunction } from './deploy.ts'
import { listDeployments } from './list.ts'
import { removeDeployment } from './remove.ts'
import { lambdaRequest } from './request.ts'
import { type ModuleRuntime } from '../port.ts'

/** The settings of modules on Lambda. */
export interface LambdaSettings
  extends
    Pick<ModuleControl, 'prefix' | 'role' | 'images' | 'tokenOf'>,
    Partial<Pick<ModuleControl, 'memoryMegabytes' | 'logGroup' | 'timeoutSeconds' | 'pollMs' | 'timeoutMs'>> {
  /** Endpoint and credentials of Lambda; from the environment by default. */
  aws?: LambdaClientConfig
}

/**
 * Runs modules as AWS Lambda functions: one function for each module, one version for each deployment. A deployment may
 * have several sandboxes or none: each configures itself at initialization and starts before its first request.
 */
export function lambdaRuntime({ aws = {}, ...settings }: LambdaSettings): ModuleRuntime {
  const client = new LambdaClient({ requestHandler: patient, ...aws })
  const defaults = { memoryMegabytes: 256, logGroup: '', timeoutSeconds: 60, pollMs: 1000, timeoutMs: 120_000 }
  const control: ModuleControl = { ...defaults, ...settings, client }
  return {
    deploy: (spec) => deployFunction(control, spec),
    request: lambdaRequest(aws, control.tokenOf),
    remove: (deployment) => removeDeployment(control, deployment),
    list: () => listDeployments(control),
  }
}

/** The creation of a function takes seconds, not milliseconds. */
const patient = { connectionTimeout: 1000, requestTimeout: 20_000, throwOnRequestTimeout: true } as const
