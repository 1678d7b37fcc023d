import type { UpdateAccepted, UpdateAction, UpdateRequest } from '@platform/contract/update'
import { reauthorize } from '../accounts/current-rights.ts'
import { enqueueOperation } from '../aws/queues.ts'
import type { Caller } from '../caller.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { orThrow, type WriteItem, upsert } from '../db/table.ts'
import { PlatformError, platformError, validationFailedError } from '../error.ts'
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

/** All checks come before the first write; one transaction then locks the platform and stores the operation. */

/** `verifiedBy` is the name of the key that signed the release, if it was verified for this request. */
interface UpdateTarget {
  plan: UpdatePlan
  verifiedBy?: string
}

/** Checks in this order: `update_in_progress`, errors of the target release, `active_jobs`. */
export async function update(caller: Caller, request: UpdateRequest): Promise<UpdateAccepted> {
  const { action, force = false } = request
  const resolveTarget = targetResolver(request)
  const [, item] = await reauthorize(caller, ['platform:admin'], [keys.updateState()])
  const state = parseUpdateState(item)
  if ((await runningUpdate(caller.organisationId, state)) !== undefined) throw platformError('update_in_progress')
  const target = await resolveTarget(state)
  if (!force && (await isAnyJobRunning())) throw platformError('active_jobs')
  const jobId = await startOperation(caller, target, state)
  return { jobId, action, targetVersion: target.plan.release.version, status: 'InProgress' }
}

function targetResolver({
  action,
  targetVersion,
}: UpdateRequest): (state: UpdateState) => UpdateTarget | Promise<UpdateTarget> {
  if (action === 'rollback') return (state) => rollbackTarget(targetVersion, state)
  if (targetVersion !== undefined) return (state) => applyTarget(targetVersion, state)
  const message = 'must be a version, such as the latest one of the update check'
  throw validationFailedError([{ in: 'body', path: '/targetVersion', code: 'invalid_type', message }])
}

async function applyTarget(targetVersion: string, state: UpdateState): Promise<UpdateTarget> {
  const release = await findRelease(targetVersion)
  const incompatibility = findIncompatibility(release, version)
  if (incompatibility !== undefined) {
    throw new PlatformError(
      incompatibility.code,
      `Release ${targetVersion} cannot be applied. ${incompatibility.reason}`,
    )
  }
  const { repository, digest, verifiedBy, document } = release
  const target = { version: targetVersion, repository, digest, relay: document.relay }
  return { plan: { action: 'apply', release: target, before: activeRelease(state) }, verifiedBy }
}

/** Does not verify the release: it was verified when it was applied, unless it was deployed. */
function rollbackTarget(targetVersion: string | undefined, state: UpdateState): UpdateTarget {
  const release = previousRelease(state)
  if (release === undefined) throw platformError('no_previous_version')
  // The deployment connects the queue of updates only if a release source is configured.
  if (config.PLAT_UPDATE_TARGET === 'lambda-alias' && config.PLAT_RELEASE_SOURCE === '')
    throw new PlatformError('version_not_available', 'Updates are disabled: PLAT_RELEASE_SOURCE is empty.')
  if (targetVersion !== undefined && targetVersion !== release.version) {
    throw new PlatformError(
      'version_not_available',
      `The previous version is ${release.version}: a rollback cannot apply another one.`,
    )
  }
  return { plan: { action: 'rollback', release, before: activeRelease(state) } }
}

const operationTypes = {
  apply: { type: 'PlatformUpdate', steps: updateSteps },
  rollback: { type: 'PlatformRollback', steps: rollbackSteps },
} as const satisfies Record<UpdateAction, Pick<OperationRequest, 'type' | 'steps'>>

async function startOperation(caller: Caller, { plan, verifiedBy }: UpdateTarget, state: UpdateState): Promise<string> {
  const { action, release, before } = plan
  const versions = { action, targetVersion: release.version, previousVersion: before.version }
  const payload = { ...versions, ...imageField(plan), ...(verifiedBy !== undefined && { verifiedBy }) }
  const operation = newOperation(caller, { ...operationTypes[action], payload, plan: { ...plan } })
  const jobId = operation.id
  const queueEffects = queueChange(operation)
  const data = { jobId, action, version: release.version, previousVersion: before.version }
  await commit(caller, {
    writes: [lockUpdateWrite(state, jobId), ...queueEffects.writes],
    audit: { action: `update.${action}`, resource: release.version, detail: auditDetail(plan) },
    events: [{ name: 'update.started', subject: jobId, data }, ...queueEffects.events],
    transitions: queueEffects.transitions,
  })
  await enqueueOperation({ organisationId: caller.organisationId, jobId, type: operation.type })
  return jobId
}

const imageField = ({ release: { repository, digest } }: UpdatePlan): { image?: string } =>
  repository === undefined || digest === undefined ? {} : { image: `${repository}@${digest}` }

const auditDetail = (plan: UpdatePlan): string =>
  [`from ${plan.before.version} to ${plan.release.version}`, imageField(plan).image].filter(Boolean).join(', ')

/** Returns undefined if no job, a finished one or a missing one holds the lock. */
export async function runningUpdate(organisationId: string, { jobId }: UpdateState): Promise<string | undefined> {
  const operation = jobId === undefined ? undefined : await findOperation({ organisationId, jobId })
  return operation === undefined || isOperationTerminal(operation) ? undefined : operation.id
}

/** Throws `update_in_progress` if the state has changed since it was read. */
const lockUpdateWrite = ({ revision }: UpdateState, jobId: string): WriteItem =>
  orThrow(
    upsert(
      keys.updateState(),
      { set: { jobId }, add: { revision: 1 } },
      { revision: revision === 0 ? { absent: true } : { is: revision } },
    ),
    'update_in_progress',
  )
