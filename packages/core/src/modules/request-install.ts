import { type InstallAccepted } from '@platform/contract/module'
import { type Caller } from '../caller.ts'
import { isNewer } from './catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type WriteItem } from '../db/table.ts'
import { PlatformError, platformError } from '../error.ts'
import { lockWrite, rejectIfLocked, type InstallState, readInstallState } from './install-state.ts'
import { installSteps } from './plans.ts'
import { reserveRoutesWrite, findRouteConflict, hasCapacity } from './routes.ts'
import { type ModuleRelease, type ModuleRecord, serialise } from './record.ts'
import { newOperation, queueChange } from '../operations/operation.ts'
import { type OperationRecord } from '../operations/record.ts'
import { enqueueOperation } from '../aws/queues.ts'
import { retryOnConflict } from '../db/offset-list.ts'

/** How an install or an upgrade whose release was found good becomes a job (D47). */

/** Throws `module_already_installed` for what runs already, and for an older version that nobody has asked for by name. */
export function rejectIfInstalled({ state, release }: ModuleRecord, version: string, isUnasked: boolean): void {
  if (state !== 'Failed' && release.version === version) throw platformError('module_already_installed')
  if (isUnasked && isNewer(release.version, version)) {
    throw new PlatformError(
      'module_already_installed',
      `Version ${release.version} is installed, newer than ${version}.`,
    )
  }
}

/**
 * Takes the module and stores its job, in one transaction; looks again where somebody else was faster. `isUnasked` where nobody
 * has named the version: then it is not older than what is installed by now. One call without collisions, and a message.
 */
export async function requestInstall(
  caller: Caller,
  release: ModuleRelease,
  { first, isUnasked }: { first: InstallState; isUnasked: boolean },
): Promise<InstallAccepted> {
  let known: InstallState | undefined = first
  return retryOnConflict(async () => {
    const standing = known ?? (await readInstallState(caller, release.moduleId))
    known = undefined
    const { row, routes } = standing
    rejectIfLocked(row)
    if (row !== undefined) rejectIfInstalled(row, release.version, isUnasked)
    const { apiBasePath } = release.manifest.spec
    if (findRouteConflict(routes, release.moduleId, apiBasePath) !== undefined)
      throw platformError('module_route_taken')
    if (row === undefined && !hasCapacity(routes)) throw platformError('limit_reached')
    const operation = operationFor(caller, release, row)
    const answer = answerTo(operation, release)
    const queued = queueChange(operation)
    const refusal = await commit(caller, {
      steps: [...takingSteps(operation, release, standing), ...queued.steps],
      answer,
      audit: { action: 'module.install', resource: release.moduleId, detail: detailOf(release) },
      events: [installing(operation, release, row), ...queued.events],
      moves: queued.moves,
    })
    if (refusal !== undefined) return undefined
    await enqueueOperation({ organisationId: caller.organisationId, jobId: operation.id })
    return answer
  })
}

function operationFor(caller: Caller, release: ModuleRelease, row: ModuleRecord | undefined): OperationRecord {
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
function takingSteps(operation: OperationRecord, release: ModuleRelease, { row, routes }: InstallState): WriteItem[] {
  const [updatedAtMs, jobId] = [now(), operation.id]
  if (row !== undefined) {
    return [lockWrite(row, { state: row.deployment === undefined ? 'Installing' : 'Upgrading', jobId, updatedAtMs })]
  }
  const { apiBasePath } = release.manifest.spec
  return [createModule(release, operation, updatedAtMs), reserveRoutesWrite(routes, release.moduleId, { apiBasePath })]
}

const createModule = (
  release: ModuleRelease,
  { id, organisationId }: OperationRecord,
  updatedAtMs: number,
): WriteItem =>
  create(keys.module(release.moduleId), {
    id: release.moduleId,
    organisationId,
    state: 'Installing',
    release: serialise(release),
    jobId: id,
    updatedAtMs,
  })

const answerTo = (operation: OperationRecord, { moduleId, version, digest, isVerified }: ModuleRelease) => ({
  jobId: operation.id,
  moduleId,
  version,
  status: 'Installing' as const,
  imageDigest: digest,
  verified: isVerified,
})

const detailOf = ({ version, repository, digest, isVerified, verifiedBy }: ModuleRelease): string =>
  `${version} ${repository}@${digest}, ${isVerified ? `verified by ${verifiedBy}` : 'not verified'}`

const installing = (
  operation: OperationRecord,
  { moduleId, version }: ModuleRelease,
  row: ModuleRecord | undefined,
) => ({
  name: 'module.installing' as const,
  subject: moduleId,
  data: { moduleId, version, jobId: operation.id, ...(row && { previousVersion: row.release.version }) },
})
