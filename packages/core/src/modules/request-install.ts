import { type InstallAccepted } from '@platform/contract/module'
import { type Caller } from '../caller.ts'
import { isNewer } from './catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Step } from '../db/table.ts'
import { Fault, fault } from '../error.ts'
import { lockStep, refuseIfLocked, type Standing, standingOf } from './install-state.ts'
import { installSteps } from './plans.ts'
import { claimStep, collisionOf, hasRoom } from './routes.ts'
import { type ModuleRelease, type ModuleRow, stored } from './record.ts'
import { newOperation, queueing } from '../operations/operation.ts'
import { type OperationRow } from '../operations/record.ts'
import { announceOperation } from '../aws/queues.ts'
import { takingTurns } from '../db/offset-list.ts'

/** How an install or an upgrade whose release was found good becomes a job (D47). */

/** Throws `module_already_installed` for what runs already, and for an older version that nobody has asked for by name. */
export function refuseKnown({ state, release }: ModuleRow, version: string, isUnasked: boolean): void {
  if (state !== 'Failed' && release.version === version) throw fault('module_already_installed')
  if (isUnasked && isNewer(release.version, version)) {
    throw new Fault('module_already_installed', `Version ${release.version} is installed, newer than ${version}.`)
  }
}

/**
 * Takes the module and stores its job, in one transaction; looks again where somebody else was faster. `isUnasked` where nobody
 * has named the version: then it is not older than what is installed by now. One call without collisions, and a message.
 */
export async function acceptInstall(
  caller: Caller,
  release: ModuleRelease,
  { first, isUnasked }: { first: Standing; isUnasked: boolean },
): Promise<InstallAccepted> {
  let known: Standing | undefined = first
  return takingTurns(async () => {
    const standing = known ?? (await standingOf(caller, release.moduleId))
    known = undefined
    const { row, routes } = standing
    refuseIfLocked(row)
    if (row !== undefined) refuseKnown(row, release.version, isUnasked)
    const { apiBasePath } = release.manifest.spec
    if (collisionOf(routes, release.moduleId, apiBasePath) !== undefined) throw fault('module_route_taken')
    if (row === undefined && !hasRoom(routes)) throw fault('limit_reached')
    const operation = operationFor(caller, release, row)
    const answer = answerTo(operation, release)
    const queued = queueing(operation)
    const refusal = await commit(caller, {
      steps: [...takingSteps(operation, release, standing), ...queued.steps],
      answer,
      audit: { action: 'module.install', resource: release.moduleId, detail: detailOf(release) },
      events: [installing(operation, release, row), ...queued.events],
      moves: queued.moves,
    })
    if (refusal !== undefined) return undefined
    await announceOperation({ organisationId: caller.organisationId, jobId: operation.id })
    return answer
  })
}

function operationFor(caller: Caller, release: ModuleRelease, row: ModuleRow | undefined): OperationRow {
  const { moduleId, version, repository, digest, isVerified } = release
  const previous = row && { previousVersion: row.release.version }
  return newOperation(caller, {
    type: 'ModuleInstall',
    payload: { moduleId, version, image: `${repository}@${digest}`, verified: isVerified, ...previous },
    plan: { release, ...previous },
    steps: installSteps,
  })
}

/** A module that is there keeps its release, which may serve meanwhile; a new one claims its path with its row. */
function takingSteps(operation: OperationRow, release: ModuleRelease, { row, routes }: Standing): Step[] {
  const [updatedAtMs, jobId] = [now(), operation.id]
  if (row !== undefined) {
    return [lockStep(row, { state: row.deployment === undefined ? 'Installing' : 'Upgrading', jobId, updatedAtMs })]
  }
  const { apiBasePath } = release.manifest.spec
  return [createModule(release, operation, updatedAtMs), claimStep(routes, release.moduleId, { apiBasePath })]
}

const createModule = (release: ModuleRelease, { id, organisationId }: OperationRow, updatedAtMs: number): Step =>
  create(keys.module(release.moduleId), {
    id: release.moduleId,
    organisationId,
    state: 'Installing',
    release: stored(release),
    jobId: id,
    updatedAtMs,
  })

const answerTo = (operation: OperationRow, { moduleId, version, digest, isVerified }: ModuleRelease) => ({
  jobId: operation.id,
  moduleId,
  version,
  status: 'Installing' as const,
  imageDigest: digest,
  verified: isVerified,
})

const detailOf = ({ version, repository, digest, isVerified, verifiedBy }: ModuleRelease): string =>
  `${version} ${repository}@${digest}, ${isVerified ? `verified by ${verifiedBy}` : 'not verified'}`

const installing = (operation: OperationRow, { moduleId, version }: ModuleRelease, row: ModuleRow | undefined) => ({
  name: 'module.installing' as const,
  subject: moduleId,
  data: { moduleId, version, jobId: operation.id, ...(row && { previousVersion: row.release.version }) },
})
