import { log } from '@platform/core/log'
import { readModules } from '@platform/core/modules/module'
import { type Deployment, type ModuleRecord } from '@platform/core/modules/record'
import { shutDown } from './lifecycle/shut-down.ts'
import { type DeploymentStatus, type ModuleRuntime } from '../runtimes/port.ts'
import { checkModule } from './health-check.ts'
import { failCrashed } from './fail.ts'
import { storeDeployment, restartAll } from './restart.ts'
import { hasDeployment, type ServingModule } from './records.ts'
import { moduleRuntime } from './runtime.ts'
import { logErrors } from './log-errors.ts'

/**
 * Looks at all modules (D36, D43, D44): what should run and does not is run again, what crashes all the time has failed, what
 * nobody knows is cleared away; each module that runs gets its beat. All at once, and none waits for another. One call, and
 * those of `beat` for each module.
 */
export async function supervise(pick: () => Promise<ModuleRuntime> = moduleRuntime): Promise<void> {
  const runtime = await pick()
  // First what runs, then what is known: whatever was begun in between is known.
  const statuses = await statusesOf(runtime)
  const { modules, unreadable, healths } = await readModules()
  const statusOf = ({ deployment: { id } }: ServingModule) => statuses?.find(({ deployment }) => deployment.id === id)
  const served = modules.filter(hasDeployment)
  const missing = statuses === undefined ? [] : served.filter((row) => statusOf(row) === undefined)
  const crashed = served.filter((row) => statusOf(row)?.state === 'failed')
  const strays = (statuses ?? [])
    .map(({ deployment }) => deployment)
    .filter((each) => !unreadable.has(each.moduleId) && isStray(each, modules))
  const look = async (row: ServingModule) => {
    const { deployment = row.deployment } = statusOf(row) ?? {}
    // A tick that was ended may not have stored where it has put the module.
    await storeDeployment({ row, deployment }, row)
    await checkModule(runtime, { row: { ...row, deployment }, health: healths.get(row.id) })
  }
  const lookAtAll = (rows: readonly ServingModule[]) =>
    Promise.all(rows.map((row) => logErrors(row.id, () => look(row))))
  await Promise.all([
    lookAtAll(served.filter((row) => !missing.includes(row) && !crashed.includes(row))),
    restartAll(runtime, missing).then(lookAtAll),
    ...crashed.map((row) => logErrors(row.id, () => failCrashed(runtime, row, statusOf(row)?.lastCrash))),
    ...strays.map((deployment) => logErrors(deployment.id, () => clearAway(runtime, deployment))),
  ])
  if (unreadable.size > 0) return
  await logErrors('images', async () => runtime.tidy?.(modules.map(({ release }) => release.digest)))
}

/** What runs; undefined where nobody can tell: then nothing is decided by it, and modules miss their beats. */
async function statusesOf(runtime: ModuleRuntime): Promise<DeploymentStatus[] | undefined> {
  try {
    return await runtime.list()
  } catch (cause) {
    log('error', 'What modules run on cannot be asked', { cause })
    return undefined
  }
}

/** An operation under way knows what it deploys, and what it replaces. */
const isStray = ({ id, moduleId }: Deployment, modules: readonly ModuleRecord[]): boolean =>
  !modules.some((row) => row.id === moduleId && (row.jobId !== undefined || row.deployment?.id === id))

async function clearAway(runtime: ModuleRuntime, deployment: Deployment): Promise<void> {
  log('warn', 'A deployment that belongs to no module is removed', { deployment: deployment.id })
  await shutDown(runtime, deployment)
}
