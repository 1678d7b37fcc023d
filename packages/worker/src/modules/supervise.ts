import { BoundedCache } from '@platform/core/lib/bounded-cache'
import { log } from '@platform/core/log'
import { readModules } from '@platform/core/modules/module'
import type { Deployment } from '@platform/core/modules/deployment'
import type { ModuleRecord } from '@platform/core/modules/record'
import { shutDown } from './lifecycle/shut-down.ts'
import type { DeploymentStatus, ModuleRuntime } from '../runtimes/port.ts'
import { checkModule } from './health-check.ts'
import { failCrashed, logErrors } from './fail.ts'
import { logReload, storeDeployment, restartAll } from './restart.ts'
import { hasDeployment, type ServingModule } from './records.ts'
import { moduleRuntime } from './runtime.ts'

/**
 * Supervises all modules: restarts missing deployments, fails modules that crash repeatedly, removes orphaned
 * deployments, and checks each running module. Modules are processed concurrently and independently.
 */
export async function supervise(openRuntime: () => Promise<ModuleRuntime> = moduleRuntime): Promise<void> {
  const runtime = await openRuntime()
  // Deployments are listed before records are read, so that every listed deployment already has its record.
  const statuses = await statusesOf(runtime)
  const { modules, invalidIds, healthById } = await readModules()
  const statusOf = ({ deployment: { id } }: ServingModule) => statuses?.find(({ deployment }) => deployment.id === id)
  const servingModules = modules.filter(hasDeployment)
  const missingModules = statuses === undefined ? [] : servingModules.filter((record) => statusOf(record) === undefined)
  const crashedModules = servingModules.filter((record) => statusOf(record)?.state === 'failed')
  const orphans = (statuses ?? [])
    .map(({ deployment }) => deployment)
    .filter((each) => !invalidIds.has(each.moduleId) && isOrphan(each, modules))
  const checkOne = async (record: ServingModule) => {
    const { deployment = record.deployment } = statusOf(record) ?? {}
    // An earlier run may have been terminated before it stored the module's new deployment.
    await storeDeployment({ record, deployment }, record)
    if (hasReloaded(statusOf(record))) await logReload(runtime, { ...record, deployment })
    await checkModule(runtime, { record: { ...record, deployment }, health: healthById.get(record.id) })
  }
  const checkEach = (records: readonly ServingModule[]) =>
    Promise.all(records.map((record) => logErrors(record.id, () => checkOne(record))))
  await Promise.all([
    checkEach(servingModules.filter((record) => !missingModules.includes(record) && !crashedModules.includes(record))),
    restartAll(runtime, missingModules).then(checkEach),
    ...crashedModules.map((record) =>
      logErrors(record.id, () => failCrashed(runtime, record, statusOf(record)?.lastCrash)),
    ),
    ...orphans.map((deployment) => logErrors(deployment.id, () => removeOrphan(runtime, deployment))),
  ])
  if (invalidIds.size > 0) return
  await logErrors('images', async () => runtime.tidy?.(modules.map(({ release }) => release.digest)))
}

/** Deployment id → number of crashes at the last check. */
const crashesById = new BoundedCache<number>(10_000)

function hasReloaded(status: DeploymentStatus | undefined): boolean {
  if (status?.state !== 'running') return false
  const { id } = status.deployment
  const knownCrashes = crashesById.get(id) ?? 0
  crashesById.set(id, status.crashes)
  return status.crashes > knownCrashes
}

/** Lists the deployments. Returns undefined if the runtime is unreachable; modules then only miss checks. */
async function statusesOf(runtime: ModuleRuntime): Promise<DeploymentStatus[] | undefined> {
  try {
    return await runtime.list()
  } catch (cause) {
    log('error', 'Module runtime unreachable', { cause })
    return undefined
  }
}

/** An operation in progress manages the deployment that it creates and the one that it replaces. */
const isOrphan = ({ id, moduleId }: Deployment, modules: readonly ModuleRecord[]): boolean =>
  !modules.some((record) => record.id === moduleId && (record.jobId !== undefined || record.deployment?.id === id))

async function removeOrphan(runtime: ModuleRuntime, deployment: Deployment): Promise<void> {
  log('warn', 'Removing orphaned deployment', { deployment: deployment.id })
  await shutDown(runtime, deployment)
}
