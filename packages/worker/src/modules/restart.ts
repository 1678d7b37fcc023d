import { isDeepStrictEqual } from 'node:util'
import { now } from '@platform/core/clock'
import { unchanged } from '@platform/core/db/expression'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { log } from '@platform/core/log'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { type Deployment, serialise } from '@platform/core/modules/record'
import { callControl } from './lifecycle/control-client.ts'
import { InstanceDescription } from './lifecycle/description.ts'
import { runLifecycle, type LifecycleResult, deploymentExists } from './lifecycle/run.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { retryOnConflictFor } from './finish.ts'
import { classifyModuleError } from './errors.ts'
import { fail, logErrors } from './fail.ts'
import { recordPublished } from './lifecycle/published.ts'
import { reportedState, type ServingModule } from './records.ts'

const describeMs = 5000

/** A module and its current deployment. */
interface Redeployed {
  row: ServingModule
  deployment: Deployment
}

/**
 * Restarts modules with missing deployments, such as all modules after a restart of the one-machine platform. Deploys
 * them concurrently and runs their hooks together (section 3). Concurrent runs are idempotent. Returns the modules that
 * cannot run at present. No call if no deployment is missing, and none for a module that restarts unchanged.
 */
export async function restartAll(runtime: ModuleRuntime, missing: readonly ServingModule[]): Promise<ServingModule[]> {
  if (missing.length === 0) return []
  log('warn', 'Starting modules that should be running', { modules: missing.map(({ id }) => id) })
  const found = await Promise.all(missing.map((row) => redeploy(runtime, row)))
  const deployed = found.filter((each) => typeof each === 'object')
  const candidates = deployed.map(({ row, deployment }) => ({ deployment, manifest: row.release.manifest }))
  const results = await runLifecycle(runtime, candidates)
  const settling = results.map((result, index) =>
    logErrors(result.moduleId, () => settle(runtime, deployed[index], result)),
  )
  await Promise.all(settling)
  return missing.filter((_, index) => found[index] === 'down')
}

/** A transient error is retried at the next tick; a final error fails the module. */
async function redeploy(runtime: ModuleRuntime, row: ServingModule): Promise<Redeployed | 'down' | 'failed'> {
  const { version, repository, digest } = row.release
  const { id, moduleId } = row.deployment
  const { organisationId } = row
  try {
    const assignment = { id, moduleId, version, repository, digest, organisationId, startsItself: false }
    return { row, deployment: await runtime.deploy(assignment) }
  } catch (error) {
    const { message, isFinal } = classifyModuleError(error)
    log('error', 'Failed to restart a module', { moduleId, cause: error })
    if (!isFinal) return 'down'
    await logErrors(moduleId, () => fail(runtime, row, { code: 'PLAT-MOD-5007', message }))
    return 'failed'
  }
}

/** Runs the hooks of a running module that was never started, because its deploying process was terminated. */
export async function resumeLifecycle(runtime: ModuleRuntime, row: ServingModule): Promise<void> {
  const { deployment } = row
  const question = { method: 'GET', path: '/describe', limitMs: describeMs, answer: InstanceDescription } as const
  const asked = await callControl(runtime, deployment, question)
  await recordPublished(row, asked.published, { atMs: now(), name: 'describe' })
  if (!asked.isDone || !['Loading', 'Configured'].includes(asked.body.state)) return
  const [loaded] = await runLifecycle(runtime, [{ deployment, manifest: row.release.manifest }])
  if (loaded !== undefined) await settle(runtime, { row, deployment }, loaded)
}

async function settle(
  runtime: ModuleRuntime,
  redeployed: Redeployed | undefined,
  loaded: LifecycleResult,
): Promise<void> {
  if (redeployed === undefined) return
  const { row, deployment } = redeployed
  await recordPublished(row, loaded.published, { atMs: now(), name: 'load' })
  if (loaded.error === undefined) return storeDeployment(redeployed, loaded)
  if (await deploymentExists(runtime, deployment)) return fail(runtime, { ...row, deployment }, loaded.error)
  log('warn', 'Module stopped during start', { moduleId: row.id, reason: loaded.error.message })
}

/** Stores a module's current deployment and reported state if they have changed. Two calls, or none. */
export async function storeDeployment(
  { row, deployment }: Redeployed,
  said: Pick<LifecycleResult, 'subscriptions' | 'warnings'>,
): Promise<void> {
  const { subscriptions, warnings } = reportedState(said)
  const isSame = isDeepStrictEqual(
    [row.deployment, row.subscriptions, row.warnings],
    [deployment, subscriptions, warnings],
  )
  if (isSame) return
  const { apiBasePath } = row.release.manifest.spec
  const set = { deployment: serialise(deployment), subscriptions, warnings }
  const asRead = { updatedAtMs: { is: row.updatedAtMs }, jobId: unchanged(row.jobId) }
  const refusal = await retryOnConflictFor(async () =>
    transact([
      patch(keys.module(row.id), { set }, asRead),
      reserveRoutesWrite(await readRoutes(), row.id, { apiBasePath, deployment, subscriptions }),
    ]),
  )
  if (refusal) log('warn', 'Module changed during start', { moduleId: row.id })
}
