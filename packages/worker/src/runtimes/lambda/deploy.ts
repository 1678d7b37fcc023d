import { type Deployment } from '@platform/core/modules/record'
import { findFunction, findVersions, isOvertaken, type ModuleControl, pause } from './control.ts'
import { changeFailure } from './errors.ts'
import { reconcile, hasFailed, isBusy, isReached, publishLatest, requireSuccess } from './reconcile.ts'
import { placeImage } from './image.ts'
import { deploymentIdIn, deploymentOf, environmentOf, functionNameOf } from './names.ts'
import { type DeploymentSpec, RuntimeError } from '../port.ts'

/**
 * Publishes the version of an assignment, or finds it. Keeps no state: every step depends only on the function's
 * current state, so that a retry continues after a killed attempt. Throws `RuntimeError`. Six calls for a new function,
 * and two more for each wait, plus those for its image; two if the version exists.
 */
export async function deployFunction(control: ModuleControl, assignment: DeploymentSpec): Promise<Deployment> {
  const functionName = functionNameOf(control.prefix, assignment.moduleId)
  const untilMs = performance.now() + control.patienceMs
  try {
    const version =
      (await publishedVersion(control, functionName, assignment.id)) ?? (await publish(control, assignment, untilMs))
    await whenActive(control, functionName, version, untilMs)
    return deploymentOf(functionName, version, assignment)
  } catch (error) {
    throw changeFailure(error)
  }
}

/** The version of a deployment, if it exists; the first one if there are several. */
async function publishedVersion(control: ModuleControl, functionName: string, id: string): Promise<string | undefined> {
  const { published } = await findVersions(control, functionName)
  return published.find((version) => deploymentIdIn(version) === id)?.Version
}

async function publish(control: ModuleControl, assignment: DeploymentSpec, untilMs: number): Promise<string> {
  const { id, moduleId } = assignment
  const functionName = functionNameOf(control.prefix, moduleId)
  const environment = environmentOf(assignment, await control.tokenOf(id))
  const goal = { functionName, id, moduleId, environment, imageUri: await placeImage(control.images, assignment) }
  let hasChanged = false
  for (;;) {
    const found = await findFunction(control, functionName)
    if (found !== undefined && hasChanged) requireSuccess(found)
    try {
      if (found !== undefined && isReached(found, goal)) return await publishLatest(control, goal, found)
      if (!isBusy(found)) await reconcile(control, goal, found)
      hasChanged ||= !isBusy(found)
    } catch (error) {
      if (!isOvertaken(error)) throw error
      const version = await publishedVersion(control, functionName, id)
      if (version !== undefined) return version
    }
    await pauseUntil(control, functionName, untilMs)
  }
}

async function whenActive(control: ModuleControl, name: string, version: string, untilMs: number): Promise<void> {
  for (;;) {
    const found = await findFunction(control, name, version)
    if (found === undefined) throw new RuntimeError('unavailable', `${name}:${version} has just been removed.`)
    if (hasFailed(found)) requireSuccess(found)
    if (!isBusy(found)) return
    await pauseUntil(control, name, untilMs)
  }
}

/** The change continues after the timeout, and a retry finds its progress. */
async function pauseUntil(control: ModuleControl, functionName: string, untilMs: number): Promise<void> {
  if (performance.now() > untilMs) {
    throw new RuntimeError('unavailable', `${functionName} is not ready after ${control.patienceMs / 1000} s.`)
  }
  await pause(control)
}
