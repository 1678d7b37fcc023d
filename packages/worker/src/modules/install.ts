import { elapsedMs, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import type { Deployment } from '@platform/core/modules/deployment'
import { type ModuleRelease, isSeeded, serialise } from '@platform/core/modules/record'
import { registryClientFor } from '@platform/core/modules/registries'
import { readImage } from '@platform/oci/image'
import { parseReference } from '@platform/oci/reference'
import { verifyImage } from '@platform/oci/signature/verify'
import { OperationFailure } from './errors.ts'
import * as keys from '@platform/core/db/keys'
import { patch, replace } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import type { InstallState } from '@platform/core/modules/install-state'
import { installPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite, findRouteConflict } from '@platform/core/modules/routes'
import type { OperationRecord } from '@platform/core/operations/record'
import { runLifecycle, type LifecycleResult, deploymentExists } from './lifecycle/run.ts'
import { probe } from './lifecycle/probe.ts'
import { shutDown } from './lifecycle/shut-down.ts'
import { type DeploymentSpec, type ModuleRuntime, RuntimeError } from '../runtimes/port.ts'
import { healthItem } from './health-check.ts'
import type { OperationLease } from '@platform/core/operations/lease'
import { finishWith, type FinishChange } from './finish.ts'
import { recordPublished } from './lifecycle/published.ts'
import { reportedState, reservationOf, type ServingModule } from './records.ts'

const registryLimitMs = 30_000

/**
 * Verifies a release again before use: its image may have been deleted, and its key may have left the trust list since
 * the release was accepted. The digest protects all other content from changes.
 */
async function reverifyRelease(release: ModuleRelease): Promise<ModuleRelease> {
  const { verifiedBy: _, ...unverified } = release
  const { registry = '', repository = '' } = parseReference(release.repository) ?? {}
  const client = registryClientFor(registry, { untilMs: elapsedMs() + registryLimitMs })
  const image = await readImage(client, repository, release.digest)
  if (image === undefined) throw new OperationFailure(`${release.repository}@${release.digest} no longer exists.`)
  // Verifies the digest of the image that will run: a signature of one member of an index does not cover the others.
  const verdict = await verifyImage(client, repository, [release.digest], config.PLAT_MODULE_KEYS, { atMs: now() })
  if (verdict.isVerified) return { ...unverified, isVerified: true, verifiedBy: verdict.by }
  if (config.PLAT_ALLOW_UNVERIFIED_MODULES !== 'true') throw new OperationFailure(verdict.reason)
  return { ...unverified, isVerified: false }
}

/**
 * Installs a release, or replaces the installed release. Every attempt runs all steps again, and each step is
 * idempotent. One transaction at the end publishes the release; until then the module is unchanged for all callers.
 */
export async function install(lease: OperationLease, runtime: ModuleRuntime): Promise<void> {
  const { operation } = lease
  const plan = installPlan(operation)
  await lease.startStep('verify')
  const release = await reverifyRelease(plan.release)
  await failpoint('module.verified')
  await lease.startStep('deploy')
  const deployment = await runtime.deploy(specOf(operation, release))
  await failpoint('module.deployed')
  const result = await runHooks(lease, runtime, { release, deployment })
  await failpoint('module.loaded')
  const { checks, published } = await probe(runtime, deployment, release.manifest)
  await lease.startStep('publish')
  const health = healthItem({ checks, missed: 0, missedRuns: {}, slots: {}, revision: 0 })
  const end = { status: 'Completed', outcome: `Version ${release.version} runs.` } as const
  const { module: record } = await finishWith(lease, end, release.moduleId, (state) =>
    publishChange(state, operation, { release, deployment, result, health }),
  )
  await failpoint('module.published')
  const context = { atMs: now(), name: operation.id }
  const moduleRef = { id: release.moduleId, organisationId: operation.organisationId }
  await recordPublished(moduleRef, [...result.published, ...published], context)
  if (record?.deployment !== undefined) await removeReplaced(runtime, { ...record, deployment: record.deployment })
}

/** Each operation has its own deployment id, which is the same in every attempt. */
export const deploymentIdOf = (moduleId: string, jobId: string): string => `${moduleId}-${jobId.slice(-8)}`

const specOf = ({ id, organisationId }: OperationRecord, release: ModuleRelease): DeploymentSpec => ({
  id: deploymentIdOf(release.moduleId, id),
  moduleId: release.moduleId,
  version: release.version,
  repository: release.repository,
  digest: release.digest,
  organisationId,
  startsItself: false,
  mayRunAsProcess: isSeeded(release),
})

interface Candidate {
  release: ModuleRelease
  deployment: Deployment
}

async function runHooks(
  lease: OperationLease,
  runtime: ModuleRuntime,
  { release, deployment }: Candidate,
): Promise<LifecycleResult> {
  const candidate = { deployment, manifest: release.manifest }
  const [result] = await runLifecycle(runtime, [candidate], { onPhase: (_, phase) => lease.startStep(phase) })
  if (result?.outcome === 'Running') return result
  if (!(await deploymentExists(runtime, deployment)))
    throw new RuntimeError('unavailable', 'The deployment was removed during the installation.')
  const { message = 'The module could not be started.', code } = result?.error ?? {}
  throw new OperationFailure(message, code)
}

function publishChange(
  { module: record, routes }: InstallState,
  { id: jobId }: OperationRecord,
  {
    release,
    deployment,
    result,
    health,
  }: Candidate & { result: LifecycleResult; health: ReturnType<typeof healthItem> },
): FinishChange {
  const { moduleId, version, manifest, isVerified } = release
  const { apiBasePath } = manifest.spec
  if (record?.jobId !== jobId) throw new OperationFailure('Another operation has changed the module.')
  const conflictingId = findRouteConflict(routes, moduleId, apiBasePath)
  if (conflictingId !== undefined)
    throw new OperationFailure(`Module ${conflictingId} already uses the API path ${apiBasePath}.`)
  const { subscriptions, warnings } = reportedState(result, manifest)
  const set = {
    state: 'Running',
    release: serialise(release),
    deployment: serialise(deployment),
    subscriptions,
    warnings,
    installedAtMs: record.installedAtMs ?? now(),
    updatedAtMs: now(),
  }
  const previousVersion = record.deployment === undefined ? undefined : record.release.version
  const previousVersionField = previousVersion === undefined ? {} : { previousVersion }
  return {
    writes: [
      patch(keys.module(moduleId), { set, remove: ['jobId', 'error'] }, { jobId: { is: jobId } }),
      reserveRoutesWrite(routes, moduleId, reservationOf(release, { deployment, subscriptions })),
      replace(keys.moduleHealth(moduleId), health),
    ],
    events: [
      {
        name: 'module.installed',
        subject: moduleId,
        data: { moduleId, version, jobId, verified: isVerified, ...previousVersionField },
      },
    ],
  }
}

/** Removes a replaced deployment, which receives no more requests. If this fails, the next supervision run retries. */
async function removeReplaced(runtime: ModuleRuntime, record: ServingModule): Promise<void> {
  const { deployment } = record
  try {
    const { problems, published } = await shutDown(runtime, deployment)
    await recordPublished(record, published, { atMs: now(), name: deployment.id })
    if (problems.length > 0) log('warn', 'Module did not stop cleanly', { deployment: deployment.id, problems })
  } catch (cause) {
    log('error', 'Failed to remove a replaced module; the heartbeat retries', {
      deployment: deployment.id,
      cause,
    })
  }
}
