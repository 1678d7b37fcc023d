import { isDeepStrictEqual } from 'node:util'
import { now } from '@platform/core/clock'
import { unchangedCondition } from '@platform/core/db/expression'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { log } from '@platform/core/log'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import type { Deployment } from '@platform/core/modules/deployment'
import { isSeeded, serialise } from '@platform/core/modules/record'
import { callControl } from './lifecycle/control-client.ts'
import { InstanceDescription, logSlotWarning } from './lifecycle/description.ts'
import { runLifecycle, type LifecycleResult, deploymentExists } from './lifecycle/run.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import { retryOnConflictFor } from './finish.ts'
import { classifyModuleError } from './errors.ts'
import { fail, logErrors } from './fail.ts'
import { recordPublished } from './lifecycle/published.ts'
import { reportedState, reservationOf, type ServingModule } from './records.ts'

const describeLimitMs = 5000

interface RedeployedModule {
  record: ServingModule
  deployment: Deployment
}

/**
 * Restarts modules with missing deployments, such as all modules after a restart of the one-machine platform. Deploys
 * them concurrently and runs their hooks together. Concurrent runs are idempotent. Returns the modules whose deployment
 * failed with a transient error.
 */
export async function restartAll(runtime: ModuleRuntime, modules: readonly ServingModule[]): Promise<ServingModule[]> {
  if (modules.length === 0) return []
  log('warn', 'Starting modules that should be running', { modules: modules.map(({ id }) => id) })
  const outcomes = await Promise.all(modules.map((record) => redeploy(runtime, record)))
  const redeployedModules = outcomes.filter((each) => typeof each === 'object')
  const candidates = redeployedModules.map(({ record, deployment }) => ({
    deployment,
    manifest: record.release.manifest,
  }))
  const results = await runLifecycle(runtime, candidates)
  const writes = results.map((result, index) =>
    logErrors(result.moduleId, () => storeResult(runtime, redeployedModules[index], result)),
  )
  await Promise.all(writes)
  return modules.filter((_, index) => outcomes[index] === 'down')
}

/** Deploys a module again. A final error fails the module; after another error, the next supervision run retries. */
async function redeploy(runtime: ModuleRuntime, record: ServingModule): Promise<RedeployedModule | 'down' | 'failed'> {
  const { version, repository, digest } = record.release
  const { id, moduleId } = record.deployment
  const { organisationId } = record
  try {
    // A module that was approved in a container must not lose this isolation without a decision by an administrator.
    const mayRunAsProcess = isSeeded(record.release) && record.deployment.runtime !== 'container'
    const spec = { id, moduleId, version, repository, digest, organisationId, startsItself: false, mayRunAsProcess }
    return { record, deployment: await runtime.deploy(spec) }
  } catch (error) {
    const { message, isFinal } = classifyModuleError(error)
    log('error', 'Failed to restart a module', { moduleId, cause: error })
    if (!isFinal) return 'down'
    await logErrors(moduleId, () => fail(runtime, record, { code: 'PLAT-MOD-5007', message }))
    return 'failed'
  }
}

/**
 * Logs the slot warning for an instance that replaced a crashed one. Such an instance configures itself, without
 * `runLifecycle`.
 */
export async function logReload(runtime: ModuleRuntime, { release, deployment }: ServingModule): Promise<void> {
  const request = { method: 'GET', path: '/describe', limitMs: describeLimitMs, schema: InstanceDescription } as const
  const response = await callControl(runtime, deployment, request)
  if (response.isDone) logSlotWarning(response.body, release.manifest)
}

/** Runs the hooks of a deployed module that was never started, because the process that deployed it was terminated. */
export async function resumeLifecycle(runtime: ModuleRuntime, record: ServingModule): Promise<void> {
  const { deployment } = record
  const request = { method: 'GET', path: '/describe', limitMs: describeLimitMs, schema: InstanceDescription } as const
  const response = await callControl(runtime, deployment, request)
  await recordPublished(record, response.published, { atMs: now(), name: 'describe' })
  if (!response.isDone || !['Loading', 'Configured'].includes(response.body.state)) return
  const [result] = await runLifecycle(runtime, [{ deployment, manifest: record.release.manifest }])
  if (result !== undefined) await storeResult(runtime, { record, deployment }, result)
}

async function storeResult(
  runtime: ModuleRuntime,
  redeployedModule: RedeployedModule | undefined,
  result: LifecycleResult,
): Promise<void> {
  if (redeployedModule === undefined) return
  const { record, deployment } = redeployedModule
  await recordPublished(record, result.published, { atMs: now(), name: 'load' })
  if (result.error === undefined) return storeDeployment(redeployedModule, result)
  if (await deploymentExists(runtime, deployment)) return fail(runtime, { ...record, deployment }, result.error)
  log('warn', 'Module stopped during start', { moduleId: record.id, reason: result.error.message })
}

/** Stores the deployment and the reported state if one of them has changed. */
export async function storeDeployment(
  { record, deployment }: RedeployedModule,
  reportedResult: Pick<LifecycleResult, 'subscriptions' | 'warnings'>,
): Promise<void> {
  const { manifest } = record.release
  const { subscriptions, warnings } = reportedState(reportedResult, manifest)
  const isSame = isDeepStrictEqual(
    [record.deployment, record.subscriptions, record.warnings],
    [deployment, subscriptions, warnings],
  )
  if (isSame) return
  const set = { deployment: serialise(deployment), subscriptions, warnings }
  const unmodifiedCondition = { updatedAtMs: { is: record.updatedAtMs }, jobId: unchangedCondition(record.jobId) }
  const conflict = await retryOnConflictFor(async () =>
    transact([
      patch(keys.module(record.id), { set }, unmodifiedCondition),
      reserveRoutesWrite(await readRoutes(), record.id, reservationOf(record.release, { deployment, subscriptions })),
    ]),
  )
  if (conflict) log('warn', 'Module changed during start', { moduleId: record.id })
}
