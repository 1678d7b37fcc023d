import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, replace } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { type InstallState } from '@platform/core/modules/install-state'
import { installPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite, findRouteConflict } from '@platform/core/modules/routes'
import { type Deployment, type ModuleRelease, serialise } from '@platform/core/modules/record'
import { type OperationRecord } from '@platform/core/operations/record'
import { runLifecycle, type LifecycleResult } from './lifecycle/run.ts'
import { probe } from './lifecycle/probe.ts'
import { shutDown } from './lifecycle/shut-down.ts'
import { type DeploymentSpec, type ModuleRuntime, RuntimeError } from '../runtimes/port.ts'
import { OperationFailure } from './errors.ts'
import { healthItem } from './health-item.ts'
import { type OperationLease } from '@platform/core/operations/lease'
import { finishWith, type FinishChange } from './finish.ts'
import { recordPublished } from './published.ts'
import { reportedState, type ServingModule } from './records.ts'
import { deploymentExists } from './deployment-exists.ts'
import { reverifyRelease } from './verify.ts'

/**
 * Installs a release, in place of another where there is one (D47). Every try walks all steps again, and each may be done
 * twice. What counts happens in one transaction at the end; until then the module is as it was before, for everybody.
 */
export async function install(journal: OperationLease, runtime: ModuleRuntime): Promise<void> {
  const { operation } = journal
  const plan = installPlan(operation)
  await journal.enter('verify')
  const release = await reverifyRelease(plan.release)
  await failpoint('module.verified')
  await journal.enter('deploy')
  const deployment = await runtime.deploy(assignmentOf(operation, release))
  await failpoint('module.deployed')
  const loaded = await lead(journal, runtime, { release, deployment })
  await failpoint('module.loaded')
  const { checks, published } = await probe(runtime, deployment, release.manifest)
  await journal.enter('publish')
  const health = healthItem({ checks, missed: 0, missedRuns: {}, slots: {}, revision: 0 })
  const end = { status: 'Completed', outcome: `Version ${release.version} runs.` } as const
  const { row } = await finishWith(journal, end, release.moduleId, (standing) =>
    publication(standing, operation, { release, deployment, loaded, health }),
  )
  await failpoint('module.published')
  const occasion = { atMs: now(), name: operation.id }
  const told = { id: release.moduleId, organisationId: operation.organisationId }
  await recordPublished(told, [...loaded.published, ...published], occasion)
  if (row?.deployment !== undefined) await retire(runtime, { ...row, deployment: row.deployment })
}

/** What an operation deploys has an id of its own, the same at every try. */
export const deploymentIdOf = (moduleId: string, jobId: string): string => `${moduleId}-${jobId.slice(-8)}`

const assignmentOf = ({ id, organisationId }: OperationRecord, release: ModuleRelease): DeploymentSpec => ({
  id: deploymentIdOf(release.moduleId, id),
  moduleId: release.moduleId,
  version: release.version,
  repository: release.repository,
  digest: release.digest,
  organisationId,
  startsItself: false,
})

/** A release that is to be published. */
interface Candidate {
  release: ModuleRelease
  deployment: Deployment
}

/** Leads the module through its hooks until it is healthy. */
async function lead(
  journal: OperationLease,
  runtime: ModuleRuntime,
  { release, deployment }: Candidate,
): Promise<LifecycleResult> {
  const candidate = { deployment, manifest: release.manifest }
  const [loaded] = await runLifecycle(runtime, [candidate], { onPhase: (_, phase) => journal.enter(phase) })
  if (loaded?.outcome === 'Running') return loaded
  if (!(await deploymentExists(runtime, deployment))) throw new RuntimeError('unavailable', 'It was ended meanwhile.')
  const { message = 'It could not be loaded.', code } = loaded?.error ?? {}
  throw new OperationFailure(message, code)
}

/** The module as it runs from now on: its row, its claim, and its health in one. */
function publication(
  { row, routes }: InstallState,
  { id: jobId }: OperationRecord,
  {
    release,
    deployment,
    loaded,
    health,
  }: Candidate & { loaded: LifecycleResult; health: ReturnType<typeof healthItem> },
): FinishChange {
  const { moduleId, version, manifest, isVerified } = release
  const { apiBasePath } = manifest.spec
  if (row?.jobId !== jobId) throw new OperationFailure('The module has been changed by something else.')
  const other = findRouteConflict(routes, moduleId, apiBasePath)
  if (other !== undefined) throw new OperationFailure(`Module ${other} has the API path ${apiBasePath} by now.`)
  const { subscriptions, warnings } = reportedState(loaded)
  const set = {
    state: 'Running',
    release: serialise(release),
    deployment: serialise(deployment),
    subscriptions,
    warnings,
    installedAtMs: row.installedAtMs ?? now(),
    updatedAtMs: now(),
  }
  const previousVersion = row.deployment === undefined ? undefined : row.release.version
  const previous = previousVersion === undefined ? {} : { previousVersion }
  return {
    steps: [
      patch(keys.module(moduleId), { set, remove: ['jobId', 'error'] }, { jobId: { is: jobId } }),
      reserveRoutesWrite(routes, moduleId, { apiBasePath, deployment, subscriptions }),
      replace(keys.moduleHealth(moduleId), health),
    ],
    events: [
      {
        name: 'module.installed',
        subject: moduleId,
        data: { moduleId, version, jobId, verified: isVerified, ...previous },
      },
    ],
  }
}

/** The release that nothing leads to any more gets its time to stop. Whatever is left of it the heartbeat clears away. */
async function retire(runtime: ModuleRuntime, row: ServingModule): Promise<void> {
  const { deployment } = row
  try {
    const { problems, published } = await shutDown(runtime, deployment)
    await recordPublished(row, published, { atMs: now(), name: deployment.id })
    if (problems.length > 0) log('warn', 'A module did not stop as it should', { deployment: deployment.id, problems })
  } catch (cause) {
    log('error', 'A module that was replaced could not be removed; the heartbeat will', {
      deployment: deployment.id,
      cause,
    })
  }
}
