import type { ImageInstallation, InstallAccepted } from '@platform/contract/module'
import { parseReference } from '@platform/oci/reference'
import { enqueueOperation } from '../aws/queues.ts'
import type { Caller } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { create, type WriteItem } from '../db/table.ts'
import { PlatformError, platformError } from '../error.ts'
import { newOperation, queueChange } from '../operations/operation.ts'
import type { OperationRecord } from '../operations/record.ts'
import { commit } from '../outbox/commit.ts'
import { readCatalog } from './catalog/catalog.ts'
import { latestOf, choicesByModule, releaseOf, isNewer } from './catalog/select.ts'
import { rejectIfLocked, readInstallState, lockWrite, type InstallState } from './install-state.ts'
import { installSteps } from './plans.ts'
import { isModuleId, type ModuleRelease, type ModuleRecord, serialise } from './record.ts'
import { resolveRelease } from './release.ts'
import { reserveRoutesWrite, findRouteConflict, checkCapacity } from './routes.ts'

/**
 * All checks come before the first write, including reading and verifying the image. One transaction then locks the
 * module and stores the operation.
 */

/** Without a version, installs the one that `latestOf` selects. */
export async function installFromCatalog(
  caller: Caller,
  moduleId: string,
  { version }: { version?: string | undefined },
): Promise<InstallAccepted> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const [state, { repositories }] = await Promise.all([readInstallState(caller, moduleId), readCatalog()])
  const { module } = state
  const choices = choicesByModule(repositories).get(moduleId)
  if (choices === undefined && module === undefined) throw platformError('module_not_found')
  rejectIfLocked(module)
  // The catalog's signature status may be outdated, so the image is verified again below.
  const choice = version === undefined ? latestOf(choices ?? []) : releaseOf(choices ?? [], version)
  if (choice === undefined) throw platformError('version_not_available')
  const isDefaultVersion = version === undefined
  if (module !== undefined) rejectIfInstalled(module, choice.version, isDefaultVersion)
  const reference = parseReference(`${choice.reference}@${choice.digest}`)
  if (reference === undefined) throw platformError('version_not_available')
  const release = await resolveRelease({ reference, id: moduleId, version: choice.version })
  return requestInstall(caller, release, { state, isDefaultVersion })
}

export async function installFromImage(
  caller: Caller,
  { imageRef, manifestUrl }: ImageInstallation,
): Promise<InstallAccepted> {
  const reference = parseReference(imageRef)
  if (reference === undefined)
    throw new PlatformError('image_unreachable', 'imageRef must name its registry: host/name:tag.')
  const release = await resolveRelease({ reference, manifestUrl })
  return requestInstall(caller, release, {
    state: await readInstallState(caller, release.moduleId),
    isDefaultVersion: false,
  })
}

function rejectIfInstalled({ state, release }: ModuleRecord, version: string, isDefaultVersion: boolean): void {
  if (state !== 'Failed' && release.version === version) throw platformError('module_already_installed')
  if (isDefaultVersion && isNewer(release.version, version)) {
    throw new PlatformError(
      'module_already_installed',
      `Version ${release.version} is installed, which is newer than ${version}.`,
    )
  }
}

/** `isDefaultVersion` means that the caller requested no version, so the installed one must not be newer. */
export async function requestInstall(
  caller: Caller,
  release: ModuleRelease,
  { state: initialState, isDefaultVersion }: { state: InstallState; isDefaultVersion: boolean },
): Promise<InstallAccepted> {
  let currentState: InstallState | undefined = initialState
  return retryOnConflict(async () => {
    const state = currentState ?? (await readInstallState(caller, release.moduleId))
    currentState = undefined
    const { module, routes } = state
    rejectIfLocked(module)
    if (module !== undefined) rejectIfInstalled(module, release.version, isDefaultVersion)
    const { apiBasePath } = release.manifest.spec
    if (findRouteConflict(routes, release.moduleId, apiBasePath) !== undefined)
      throw platformError('module_route_taken')
    if (module === undefined) checkCapacity(routes)
    const operation = newInstallOperation(caller, release, module)
    const response = acceptedResponse(operation, release)
    const queueEffects = queueChange(operation)
    const failure = await commit(caller, {
      writes: [...lockWrites(operation, release, state), ...queueEffects.writes],
      response,
      audit: { action: 'module.install', resource: release.moduleId, detail: auditDetail(release) },
      events: [installingEvent(operation, release, module), ...queueEffects.events],
      transitions: queueEffects.transitions,
    })
    if (failure !== undefined) return undefined
    await enqueueOperation({ organisationId: caller.organisationId, jobId: operation.id, type: operation.type })
    return response
  })
}

function newInstallOperation(
  caller: Caller,
  release: ModuleRelease,
  module: ModuleRecord | undefined,
): OperationRecord {
  const { moduleId, version, repository, digest, isVerified } = release
  const previousVersionField = module && { previousVersion: module.release.version }
  return newOperation(caller, {
    type: 'ModuleInstall',
    payload: { moduleId, version, image: `${repository}@${digest}`, verified: isVerified, ...previousVersionField },
    plan: { release, ...previousVersionField },
    steps: installSteps,
  })
}

/** An existing module keeps its release, which may still be running; a new module reserves its API path. */
function lockWrites(operation: OperationRecord, release: ModuleRelease, { module, routes }: InstallState): WriteItem[] {
  const [updatedAtMs, jobId] = [now(), operation.id]
  if (module !== undefined) {
    return [
      lockWrite(module, { state: module.deployment === undefined ? 'Installing' : 'Upgrading', jobId, updatedAtMs }),
    ]
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

const acceptedResponse = (
  operation: OperationRecord,
  { moduleId, version, digest, isVerified, manifest }: ModuleRelease,
) => ({
  jobId: operation.id,
  moduleId,
  version,
  status: 'Installing' as const,
  imageDigest: digest,
  verified: isVerified,
  events: manifest.spec.events,
})

const auditDetail = ({ version, repository, digest, isVerified, verifiedBy }: ModuleRelease): string =>
  `${version} ${repository}@${digest}, ${isVerified ? `verified by ${verifiedBy}` : 'not verified'}`

const installingEvent = (
  operation: OperationRecord,
  { moduleId, version }: ModuleRelease,
  module: ModuleRecord | undefined,
) => ({
  name: 'module.installing' as const,
  subject: moduleId,
  data: { moduleId, version, jobId: operation.id, ...(module && { previousVersion: module.release.version }) },
})
