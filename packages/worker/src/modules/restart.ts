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
import { runLifecycle, type LifecycleResult } from './lifecycle/run.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { retryOnConflictFor } from './retry-on-conflict.ts'
import { classifyModuleError } from './errors.ts'
import { fail } from './fail.ts'
import { recordPublished } from './published.ts'
import { reportedState, type ServingModule } from './records.ts'
import { logErrors } from './log-errors.ts'
import { deploymentExists } from './deployment-exists.ts'

const describeMs = 5000

/** A module, and where it runs now. */
interface Redeployed {
  row: ServingModule
  deployment: Deployment
}

/**
 * Runs modules again whose deployments have gone, as all have after a restart of the one-machine platform: deployed at once,
 * and led through their hooks together (section 3). Doing it twice at once changes nothing. Answers those that cannot run
 * just now. No call where nothing is missing, and none for a module that comes back as it was.
 */
export async function restartAll(runtime: ModuleRuntime, missing: readonly ServingModule[]): Promise<ServingModule[]> {
  if (missing.length === 0) return []
  log('warn', 'Modules that should run do not, and are started', { modules: missing.map(({ id }) => id) })
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

/** What may pass by itself is tried again at the next tick; what does not is the module's failure. */
async function redeploy(runtime: ModuleRuntime, row: ServingModule): Promise<Redeployed | 'down' | 'failed'> {
  const { version, repository, digest } = row.release
  const { id, moduleId } = row.deployment
  const { organisationId } = row
  try {
    const assignment = { id, moduleId, version, repository, digest, organisationId, startsItself: false }
    return { row, deployment: await runtime.deploy(assignment) }
  } catch (error) {
    const { message, isFinal } = classifyModuleError(error)
    log('error', 'A module could not be started again', { moduleId, cause: error })
    if (!isFinal) return 'down'
    await logErrors(moduleId, () => fail(runtime, row, { code: 'PLAT-MOD-5007', message }))
    return 'failed'
  }
}

/** Leads a module through its hooks that runs and was never led, because whoever has deployed it was ended before. */
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
  log('warn', 'A module was ended while it was started', { moduleId: row.id, reason: loaded.error.message })
}

/** Stores where a module runs now, and what it says of itself, where that has changed. Two calls, or none. */
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
  if (refusal) log('warn', 'A module has changed while it was started', { moduleId: row.id })
}
