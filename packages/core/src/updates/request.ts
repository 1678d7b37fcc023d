import type { UpdateAccepted, UpdateAction, UpdateRequest } from '@platform/contract/update'
import { reauthorize } from '../accounts/current-rights.ts'
import { enqueueOperation } from '../aws/queues.ts'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { orThrow, type WriteItem, upsert } from '../db/table.ts'
import { PlatformError, platformError, validationFailed } from '../error.ts'
import { isAnyJobRunning } from '../jobs/active.ts'
import { version } from '../lib/version.ts'
import { newOperation, type OperationRequest, queueChange, findOperation } from '../operations/operation.ts'
import { isOperationTerminal } from '../operations/record.ts'
import { commit } from '../outbox/commit.ts'
import {
  previousRelease,
  activeRelease,
  parseUpdateState,
  rollbackSteps,
  type UpdatePlan,
  updateSteps,
  type UpdateState,
} from './record.ts'
import { findIncompatibility } from './compatibility.ts'
import { findRelease } from './release-feed.ts'

/**
 * Requests updates and rollbacks. All checks come before the first write; one transaction then locks the platform and
 * stores the operation.
 */

/** The plan of an update, and the signer of a release verified now. */
interface Wanted {
  plan: UpdatePlan
  verifiedBy?: string
}

/**
 * Starts an update or a rollback. Throws, in this order, `update_in_progress`, errors of the target
 * (`version_not_available`, `infrastructure_update_required`, `release_source_unreachable`, `no_previous_version`), and
 * `active_jobs`. Two calls and a message, one more if the lock names a job, those of `isAnyJobRunning` without `force`,
 * and those to the registry; a rollback needs no registry.
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

/** The target of a request, given the state. Throws `validation_failed` for an update without a version. */
function targetOf({ action, targetVersion }: UpdateRequest): (state: UpdateState) => Wanted | Promise<Wanted> {
  if (action === 'rollback') return (state) => wayBack(targetVersion, state)
  if (targetVersion !== undefined) return (state) => updateTo(targetVersion, state)
  const message = 'must be a version, such as the latest one of the update check'
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

/** The active release was verified when applied; the previous one is kept, or verified again by the worker. */
function wayBack(targetVersion: string | undefined, state: UpdateState): Wanted {
  const release = previousRelease(state)
  if (release === undefined) throw platformError('no_previous_version')
  if (targetVersion !== undefined && targetVersion !== release.version) {
    throw new PlatformError(
      'version_not_available',
      `The previous version is ${release.version}: a rollback cannot use another one.`,
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
    writes: [lockUpdateWrite(state, jobId), ...queued.writes],
    audit: { action: `update.${action}`, resource: release.version, detail: detailOf(plan) },
    events: [{ name: 'update.started', subject: jobId, data }, ...queued.events],
    transitions: queued.transitions,
  })
  await enqueueOperation({ organisationId: caller.organisationId, jobId })
  return jobId
}

const imageOf = ({ release: { repository, digest } }: UpdatePlan): { image?: string } =>
  repository === undefined || digest === undefined ? {} : { image: `${repository}@${digest}` }

const detailOf = (plan: UpdatePlan): string =>
  [`from ${plan.before.version} to ${plan.release.version}`, imageOf(plan).image].filter(Boolean).join(', ')

/** One update at a time: the update state has its job. */

/**
 * The running update's job, if any. An ended or missing job holds no lock. One call if the state has a job, else none.
 */
export async function runningUpdate(organisationId: string, { jobId }: UpdateState): Promise<string | undefined> {
  const operation = jobId === undefined ? undefined : await findOperation({ organisationId, jobId })
  return operation === undefined || isOperationTerminal(operation) ? undefined : operation.id
}

/** Locks the platform for an update. Throws `update_in_progress` after a concurrent lock. */
const lockUpdateWrite = ({ revision }: UpdateState, jobId: string): WriteItem =>
  orThrow(
    upsert(
      keys.updateState(),
      { set: { jobId }, add: { revision: 1 } },
      { revision: revision === 0 ? { absent: true } : { is: revision } },
    ),
    'update_in_progress',
  )
