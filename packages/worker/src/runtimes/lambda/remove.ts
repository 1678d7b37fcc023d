import {
  DeleteFunctionCommand,
  type FunctionConfiguration,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/error-name'
import { type Deployment } from '@platform/core/modules/record'
import { findVersions, type FoundVersions, type LambdaControl, pause } from './control.ts'
import { changeFailure } from './errors.ts'
import { repositoryOf } from './image.ts'
import { deploymentIdIn, partsOf } from './names.ts'

/**
 * Removes what there is of a deployment. After the last version its images go, which Lambda wants for as long as there is one,
 * and the function last: by it whoever comes next finds what is left. Until then images of versions that have gone stay, which
 * costs what storage costs: nobody counts who uses which. Can be repeated. Throws `RuntimeFailure`. Three calls.
 */
export async function removeDeployment(control: LambdaControl, deployment: Deployment): Promise<void> {
  const untilMs = performance.now() + control.patienceMs
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

async function removeNow(control: LambdaControl, deployment: Deployment): Promise<void> {
  const { functionName } = partsOf(deployment)
  const found = await findVersions(control, functionName)
  const isOurs = (version: FunctionConfiguration) => deploymentIdIn(version) === deployment.id
  for (const version of found.published.filter(isOurs)) await remove(control, functionName, version.Version)
  const rest = { latest: found.latest, published: found.published.filter((version) => !isOurs(version)) }
  await removeRest(control, deployment, rest)
}

/** What is not published belongs to this deployment, to none, or to one that is under way and needs the function. */
async function removeRest(control: LambdaControl, deployment: Deployment, { latest, published }: FoundVersions) {
  const { functionName } = partsOf(deployment)
  const { target } = control.images
  const owner = latest === undefined ? undefined : deploymentIdIn(latest)
  if (owner !== undefined && owner !== deployment.id) return
  if (published.length > 0) {
    if (owner !== undefined) await forget(control, functionName)
    return
  }
  await target.removeRepository(repositoryOf(target, deployment.moduleId))
  if (latest !== undefined) await remove(control, functionName, undefined)
}

async function remove({ client }: LambdaControl, FunctionName: string, Qualifier: string | undefined): Promise<void> {
  try {
    await client.send(new DeleteFunctionCommand({ FunctionName, Qualifier }))
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
  }
}

/** `$LATEST` stays as long as its function; it need not say any more whose it was, nor keep the token. */
async function forget({ client }: LambdaControl, FunctionName: string): Promise<void> {
  await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables: {} } }))
}
