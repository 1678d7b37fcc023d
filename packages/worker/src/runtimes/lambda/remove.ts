import {
  DeleteFunctionCommand,
  type FunctionConfiguration,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/sdk'
import type { Deployment } from '@platform/core/modules/deployment'
import { findVersions, type FunctionVersions, type ModuleLambdaContext, pause } from './control.ts'
import { changeFailure } from './errors.ts'
import { repositoryOf } from './image.ts'
import { deploymentIdIn, parseHandle } from './names.ts'

/**
 * Removes a deployment. After the last version, removes the images, which Lambda needs while a version exists. Removes
 * the function last, because a retry finds the remaining images by it. Until then, images of removed versions cost
 * storage, because their use is not counted. The call can be repeated. Throws `RuntimeError`.
 */
export async function removeDeployment(control: ModuleLambdaContext, deployment: Deployment): Promise<void> {
  const untilMs = performance.now() + control.timeoutMs
  for (;;) {
    try {
      await removeNow(control, deployment)
      return
    } catch (error) {
      if (!isAws(error, 'ResourceConflictException')) throw changeFailure(error)
      if (performance.now() > untilMs) throw changeFailure(error)
    }
    await pause(control)
  }
}

async function removeNow(control: ModuleLambdaContext, deployment: Deployment): Promise<void> {
  const { functionName } = parseHandle(deployment)
  const versions = await findVersions(control, functionName)
  const isOfDeployment = (version: FunctionConfiguration) => deploymentIdIn(version) === deployment.id
  for (const version of versions.published.filter(isOfDeployment)) await remove(control, functionName, version.Version)
  const remainingVersions = {
    latest: versions.latest,
    published: versions.published.filter((version) => !isOfDeployment(version)),
  }
  await removeRemaining(control, deployment, remainingVersions)
}

/** `$LATEST` belongs to this deployment, to none, or to one in progress that needs the function. */
async function removeRemaining(
  control: ModuleLambdaContext,
  deployment: Deployment,
  { latest, published }: FunctionVersions,
) {
  const { functionName } = parseHandle(deployment)
  const { target } = control.images
  const ownerId = latest === undefined ? undefined : deploymentIdIn(latest)
  if (ownerId !== undefined && ownerId !== deployment.id) return
  if (published.length > 0) {
    if (ownerId !== undefined) await clearEnvironment(control, functionName)
    return
  }
  await target.removeRepository(repositoryOf(target, deployment.moduleId))
  if (latest !== undefined) await remove(control, functionName, undefined)
}

async function remove(
  { client }: ModuleLambdaContext,
  FunctionName: string,
  Qualifier: string | undefined,
): Promise<void> {
  try {
    await client.send(new DeleteFunctionCommand({ FunctionName, Qualifier }))
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
  }
}

/**
 * `$LATEST` cannot be deleted without its function, so its environment is cleared of the deployment id and the token.
 */
async function clearEnvironment({ client }: ModuleLambdaContext, FunctionName: string): Promise<void> {
  await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables: {} } }))
}
