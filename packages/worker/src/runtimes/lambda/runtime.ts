import { LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { type LambdaControl } from './control.ts'
import { deployFunction } from './deploy.ts'
import { listDeployments } from './list.ts'
import { removeDeployment } from './remove.ts'
import { lambdaRequest } from './request.ts'
import { type ModuleRuntime } from '../port.ts'

/** What modules on Lambda are made with. */
export interface LambdaSettings
  extends
    Pick<LambdaControl, 'prefix' | 'role' | 'images' | 'tokenOf'>,
    Partial<Pick<LambdaControl, 'memoryMegabytes' | 'logGroup' | 'timeoutSeconds' | 'pollMs' | 'patienceMs'>> {
  /** Where Lambda is, and who asks; the environment says so by default. */
  aws?: LambdaClientConfig
}

/**
 * Runs modules as functions of AWS Lambda, one for each module, and a version for each deployment. There may be several
 * sandboxes of a deployment, or none: each configures itself as it begins, and starts itself before its first request.
 */
export function lambdaRuntime({ aws = {}, ...settings }: LambdaSettings): ModuleRuntime {
  const client = new LambdaClient({ requestHandler: patient, ...aws })
  const defaults = { memoryMegabytes: 256, logGroup: '', timeoutSeconds: 60, pollMs: 1000, patienceMs: 120_000 }
  const control: LambdaControl = { ...defaults, ...settings, client }
  return {
    deploy: (assignment) => deployFunction(control, assignment),
    request: lambdaRequest(aws, control.tokenOf),
    remove: (deployment) => removeDeployment(control, deployment),
    list: () => listDeployments(control),
  }
}

/** A function is created in seconds, not in milliseconds. */
const patient = { connectionTimeout: 1000, requestTimeout: 20_000, throwOnRequestTimeout: true } as const
