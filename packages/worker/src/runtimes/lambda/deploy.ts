import type { Deployment } from '@platform/core/modules/deployment'
import { findFunction, findVersions, isConflict, type ModuleLambdaContext, pause } from './control.ts'
import { changeFailure } from './errors.ts'
import { reconcile, hasFailed, isBusy, isReached, publishLatest, requireSuccess } from './reconcile.ts'
import { copyImage } from './image.ts'
import { deploymentIdIn, deploymentOf, environmentOf, functionNameOf } from './names.ts'
import { type DeploymentSpec, RuntimeError } from '../port.ts'

/**
 * Publishes the version of a deployment, or finds it. Keeps no state: every step depends only on the function's current
 * state, so that a retry continues after a killed attempt. Throws `RuntimeError`.
 */
export async function deployFunction(control: ModuleLambdaContext, spec: DeploymentSpec): Promise<Deployment> {
  const functionName = functionNameOf(control.prefix, spec.moduleId)
  const untilMs = performance.now() + control.timeoutMs
  try {
    const version = (await publishedVersion(control, functionName, spec.id)) ?? (await publish(control, spec, untilMs))
    await whenActive(control, functionName, version, untilMs)
    return deploymentOf(functionName, version, spec)
  } catch (error) {
    throw changeFailure(error)
  }
}

/** Finds the published version of a deployment; the first one if concurrent attempts have published several. */
async function publishedVersion(
  control: ModuleLambdaContext,
  functionName: string,
  id: string,
): Promise<string | undefined> {
  const { published } = await findVersions(control, functionName)
  return published.find((version) => deploymentIdIn(version) === id)?.Version
}

async function publish(control: ModuleLambdaContext, spec: DeploymentSpec, untilMs: number): Promise<string> {
  const { id, moduleId } = spec
  const functionName = functionNameOf(control.prefix, moduleId)
  const environment = environmentOf(spec, await control.tokenOf(id))
  const desired = { functionName, id, moduleId, environment, imageUri: await copyImage(control.images, spec) }
  let hasChanged = false
  for (;;) {
    const state = await findFunction(control, functionName)
    if (state !== undefined && hasChanged) requireSuccess(state)
    try {
      if (state !== undefined && isReached(state, desired)) return await publishLatest(control, desired, state)
      if (!isBusy(state)) await reconcile(control, desired, state)
      hasChanged ||= !isBusy(state)
    } catch (error) {
      if (!isConflict(error)) throw error
      const version = await publishedVersion(control, functionName, id)
      if (version !== undefined) return version
    }
    await pauseUntil(control, functionName, untilMs)
  }
}

async function whenActive(control: ModuleLambdaContext, name: string, version: string, untilMs: number): Promise<void> {
  for (;;) {
    const state = await findFunction(control, name, version)
    if (state === undefined) throw new RuntimeError('unavailable', `${name}:${version} has just been removed.`)
    if (hasFailed(state)) requireSuccess(state)
    if (!isBusy(state)) return
    await pauseUntil(control, name, untilMs)
  }
}

/** Waits. Throws after `untilMs`; the change then continues, and a retry finds its progress. */
async function pauseUntil(control: ModuleLambdaContext, functionName: string, untilMs: number): Promise<void> {
  if (performance.now() > untilMs) {
    throw new RuntimeError('unavailable', `${functionName} is not ready after ${control.timeoutMs / 1000} s.`)
  }
  await pause(control)
}
