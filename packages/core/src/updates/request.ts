import { type UpdateAccepted, type UpdateAction, type UpdateRequest } from '@platform/contract/update'
import { isAnyJobRunning } from '../jobs/active.ts'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { PlatformError, platformError, validationFailed } from '../error.ts'
import { newOperation, type OperationRequest, queueChange } from '../operations/operation.ts'
import { enqueueOperation } from '../aws/queues.ts'
import { findRelease } from './release-feed.ts'
import { findIncompatibility } from './compatibility.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { lockUpdateWrite, runningUpdate } from './lock.ts'
import { parseUpdateState, rollbackSteps, type UpdatePlan, updateSteps, type UpdateState } from './record.ts'
import { previousRelease, activeRelease } from './active-release.ts'
import { version } from '../lib/version.ts'

/**
 * Updates of the platform and the way back, as they are asked for (D51). All that can be refused is refused before anything
 * is written; then one transaction takes the platform and stores the job that does the rest.
 */

/** What an update is done with, and who vouches for its release where that was looked at now. */
interface Wanted {
  plan: UpdatePlan
  verifiedBy?: string
}

/**
 * Begins an update to a version, or the way back to the previous one. Throws, in this order, `update_in_progress`, what is wrong
 * with the target (`version_not_available`, `infrastructure_update_required`, `release_source_unreachable`,
 * `no_previous_version`), and `active_jobs`. Two calls and a message, one more where a job has left its lock, those of
 * `isAnyJobRunning` without `force`, and those to the registry; a rollback needs no registry.
 */
export async function update(caller: Caller, request: UpdateRequest): Promise<UpdateAccepted> {
  const { action, force = false } = request
  const targetIn = targetOf(request)
  const [, item] = await reauthorize(caller, ['platform:admin'], [keys.updateState()])
  const state = parseUpdateState(item)
  if ((await runningUpdate(caller.organisationId, state)) !== undefined) throw platformError('update_in_progress')
  const wanted = await targetIn(state)
  if (!force && (await isAnyJobRunning())) throw platformError('active_jobs')
  const jobId = await begin(caller, wanted, state)
  return { jobId, action, targetVersion: wanted.plan.release.version, status: 'InProgress' }
}

/** What a request leads to, once the state is known. Throws `validation_failed` for an update that names no version. */
function targetOf({ action, targetVersion }: UpdateRequest): (state: UpdateState) => Wanted | Promise<Wanted> {
  if (action === 'rollback') return (state) => wayBack(targetVersion, state)
  if (targetVersion !== undefined) return (state) => updateTo(targetVersion, state)
  const message = 'must name a version, such as the latest one that the check tells of'
  throw validationFailed([{ in: 'body', path: '/targetVersion', code: 'invalid_type', message }])
}

async function updateTo(targetVersion: string, state: UpdateState): Promise<Wanted> {
  const release = await findRelease(targetVersion)
  const obstacle = findIncompatibility(release, version)
  if (obstacle !== undefined) {
    throw new PlatformError(obstacle.code, `Release ${targetVersion} cannot be applied. ${obstacle.reason}`)
  }
  const { repository, digest, verifiedBy } = release
  const wanted = { version: targetVersion, repository, digest }
  return { plan: { action: 'apply', release: wanted, before: activeRelease(state) }, verifiedBy }
}

/** What serves was verified when it was applied; the previous release is kept where it ran, or verified again on its way. */
function wayBack(targetVersion: string | undefined, state: UpdateState): Wanted {
  const release = previousRelease(state)
  if (release === undefined) throw platformError('no_previous_version')
  if (targetVersion !== undefined && targetVersion !== release.version) {
    throw new PlatformError(
      'version_not_available',
      `The previous version is ${release.version}: a rollback leads to no other.`,
    )
  }
  return { plan: { action: 'rollback', release, before: activeRelease(state) } }
}

const kinds = {
  apply: { type: 'PlatformUpdate', steps: updateSteps },
  rollback: { type: 'PlatformRollback', steps: rollbackSteps },
} as const satisfies Record<UpdateAction, Pick<OperationRequest, 'type' | 'steps'>>

async function begin(caller: Caller, { plan, verifiedBy }: Wanted, state: UpdateState): Promise<string> {
  const { action, release, before } = plan
  const facts = { action, targetVersion: release.version, previousVersion: before.version }
  const payload = { ...facts, ...imageOf(plan), ...(verifiedBy !== undefined && { verifiedBy }) }
  const operation = newOperation(caller, { ...kinds[action], payload, plan: { ...plan } })
  const jobId = operation.id
  const queued = queueChange(operation)
  const data = { jobId, action, version: release.version, previousVersion: before.version }
  await commit(caller, {
    steps: [lockUpdateWrite(state, jobId), ...queued.steps],
    audit: { action: `update.${action}`, resource: release.version, detail: detailOf(plan) },
    events: [{ name: 'update.started', subject: jobId, data }, ...queued.events],
    moves: queued.moves,
  })
  await enqueueOperation({ organisationId: caller.organisationId, jobId })
  return jobId
}

const imageOf = ({ release: { repository, digest } }: UpdatePlan): { image?: string } =>
  repository === undefined || digest === undefined ? {} : { image: `${repository}@${digest}` }

const detailOf = (plan: UpdatePlan): string =>
  [`from ${plan.before.version} to ${plan.release.version}`, imageOf(plan).image].filter(Boolean).join(', ')
