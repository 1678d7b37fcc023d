import { log } from '@platform/core/log'
import { readModules } from '@platform/core/modules/module'
import { type Deployment, type ModuleRecord } from '@platform/core/modules/record'
import { shutDown } from './lifecycle/shut-down.ts'
import { type DeploymentStatus, type ModuleRuntime } from '../runtimes/port.ts'
import { checkModule } from './health-check.ts'
import { failCrashed, logErrors } from './fail.ts'
import { storeDeployment, restartAll } from './restart.ts'
import { hasDeployment, type ServingModule } from './records.ts'
import { moduleRuntime } from './runtime.ts'

/**
 * Checks all modules (D36, D43, D44): restarts missing deployments, fails modules that crash repeatedly, removes
 * orphaned deployments, and runs one heartbeat for each running module. Modules are processed concurrently and
 * independently. One call, and those of `checkModule` for each module.
 */
export async function supervise(pick: () => Promise<ModuleRuntime> = moduleRuntime): Promise<void> {
  const runtime = await pick()
  // Deployments are listed before records are read, so that every listed deployment already has its record.
  const statuses = await statusesOf(runtime)
  const { modules, invalidIds, healthById } = await readModules()
  const statusOf = ({ deployment: { id } }: ServingModule) => statuses?.find(({ deployment }) => deployment.id === id)
  const served = modules.filter(hasDeployment)
  const missing = statuses === undefined ? [] : served.filter((row) => statusOf(row) === undefined)
  const crashed = served.filter((row) => statusOf(row)?.state === 'failed')
  const strays = (statuses ?? [])
    .map(({ deployment }) => deployment)
    .filter((each) => !invalidIds.has(each.moduleId) && isStray(each, modules))
  const look = async (row: ServingModule) => {
    const { deployment = row.deployment } = statusOf(row) ?? {}
    // A terminated tick may not have stored the module's new deployment.
    await storeDeployment({ row, deployment }, row)
    await checkModule(runtime, { row: { ...row, deployment }, health: healthById.get(row.id) })
  }
  const lookAtAll = (rows: readonly ServingModule[]) =>
    Promise.all(rows.map((row) => logErrors(row.id, () => look(row))))
  await Promise.all([
    lookAtAll(served.filter((row) => !missing.includes(row) && !crashed.includes(row))),
    restartAll(runtime, missing).then(lookAtAll),
    ...crashed.map((row) => logErrors(row.id, () => failCrashed(runtime, row, statusOf(row)?.lastCrash))),
    ...strays.map((deployment) => logErrors(deployment.id, () => clearAway(runtime, deployment))),
  ])
  if (invalidIds.size > 0) return
  await logErrors('images', async () => runtime.tidy?.(modules.map(({ release }) => release.digest)))
}

/** The running deployments. Undefined if the runtime is unreachable; modules then only miss heartbeats. */
async function statusesOf(runtime: ModuleRuntime): Promise<DeploymentStatus[] | undefined> {
  try {
    return await runtime.list()
  } catch (cause) {
    log('error', 'Module runtime unreachable', { cause })
    return undefined
  }
}

/** An operation in progress manages the deployment that it creates and the one that it replaces. */
const isStray = ({ id, moduleId }: Deployment, modules: readonly ModuleRecord[]): boolean =>
  !modules.some((row) => row.id === moduleId && (row.jobId !== undefined || row.deployment?.id === id))

async function clearAway(runtime: ModuleRuntime, deployment: Deployment): Promise<void> {
  log('warn', 'Removing orphaned deployment', { deployment: deployment.id })
  await shutDown(runtime, deployment)
}
