import { type ImageInstallation, type InstallAccepted } from '@platform/contract/module'
import { parseReference } from '@platform/oci/reference'
import { type Caller } from '../caller.ts'
import { readCatalog } from './catalog/catalog.ts'
import { latestOf, choicesByModule, releaseOf } from './catalog/select.ts'
import { PlatformError, platformError } from '../error.ts'
import { requestInstall, rejectIfInstalled } from './request-install.ts'
import { rejectIfLocked, readInstallState } from './install-state.ts'
import { resolveRelease } from './release.ts'
import { isModuleId } from './record.ts'

/**
 * Installs and upgrades (D47). What can be refused is refused before anything is written: the image is read and verified
 * first. Then one transaction takes the module and stores the job that does the rest.
 */

/**
 * Installs a module of the catalog, or upgrades it: the version that is asked for, or the newest verified one. Three calls,
 * those to the registry, and a message. Throws `module_not_found`, `version_not_available` and what `resolveRelease` does.
 */
export async function installFromCatalog(
  caller: Caller,
  moduleId: string,
  { version }: { version?: string | undefined },
): Promise<InstallAccepted> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const [standing, { repositories }] = await Promise.all([readInstallState(caller, moduleId), readCatalog()])
  const { row } = standing
  const offers = choicesByModule(repositories).get(moduleId)
  if (offers === undefined && row === undefined) throw platformError('module_not_found')
  rejectIfLocked(row)
  // What the catalog says of signatures may be outdated: the image itself is asked.
  const offer = version === undefined ? latestOf(offers ?? []) : releaseOf(offers ?? [], version)
  if (offer === undefined) throw platformError('version_not_available')
  const isUnasked = version === undefined
  if (row !== undefined) rejectIfInstalled(row, offer.version, isUnasked)
  const reference = parseReference(`${offer.reference}@${offer.digest}`)
  if (reference === undefined) throw platformError('version_not_available')
  const release = await resolveRelease({ reference, id: moduleId, version: offer.version })
  return requestInstall(caller, release, { first: standing, isUnasked })
}

/**
 * Installs the module that an image is, or upgrades it: asking for an image is asking for its version. Two calls, those to the
 * registry, and a message. Throws what `resolveRelease` does.
 */
export async function installFromImage(
  caller: Caller,
  { imageRef, manifestUrl }: ImageInstallation,
): Promise<InstallAccepted> {
  const reference = parseReference(imageRef)
  if (reference === undefined)
    throw new PlatformError('image_unreachable', 'imageRef must name its registry: host/name:tag.')
  const release = await resolveRelease({ reference, manifestUrl })
  return requestInstall(caller, release, { first: await readInstallState(caller, release.moduleId), isUnasked: false })
}
