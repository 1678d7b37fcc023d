import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '@platform/contract/manifest'
import { type FetchedRelease, releaseIdentity } from '@platform/core/updates/record'
import gte from 'semver/functions/gte.js'
import * as z from 'zod'
import type { Log } from '../log.ts'
import { StartError } from '../start-error.ts'
import { removeFile, renameDurably, replaceFile } from './durable.ts'
import { DamagedRelease, type StoredRelease, readRelease } from './folder.ts'

/** The version and infrastructure of the code in the project folder. */
export interface Checkout {
  version: string
  /** Infrastructure revision that the functions require; see core/updates/infrastructure.ts. */
  infrastructure: string
}

const Current = z.object({
  release: z.object({ version, repository: z.string().exactOptional(), digest: z.string() }),
  checkout: z.object({ version, infrastructure: z.string() }),
})

const currentFile = (releasesDir: string): string => join(releasesDir, 'current.json')
const setAsideFile = (releasesDir: string): string => join(releasesDir, 'current-set-aside.json')

/** Replaces `current.json` atomically. Removes it if the functions of the checkout serve (`release` is undefined). */
export async function writeCurrentRelease(
  releasesDir: string,
  release: FetchedRelease | undefined,
  checkout: Checkout,
): Promise<void> {
  if (release === undefined) return removeFile(currentFile(releasesDir))
  const content = { release: releaseIdentity(release), checkout }
  await replaceFile(currentFile(releasesDir), `${JSON.stringify(content, null, 2)}\n`)
}

/**
 * Returns the release to start with; undefined for the functions of the checkout. Sets a release aside if the version
 * of the checkout has changed since the update and is at least as new, or the checkout requires another infrastructure.
 * Throws `StartError` if the release is missing or damaged, or `current.json` is damaged.
 */
export async function releaseAtStart(
  releasesDir: string,
  checkout: Checkout,
  log: Log,
): Promise<StoredRelease | undefined> {
  const currentRecord = await readCurrent(releasesDir, checkout)
  if (currentRecord === undefined) return undefined
  const reason = replacementReason(currentRecord, checkout)
  if (reason !== undefined) {
    await renameDurably(currentFile(releasesDir), setAsideFile(releasesDir))
    const { version: releaseVersion } = currentRecord.release
    log(`release ${releaseVersion} is set aside: ${reason}`, { release: releaseVersion, checkout: checkout.version })
    return undefined
  }
  const storedRelease = await readRelease(releasesDir, currentRecord.release).catch((error: unknown) => {
    if (error instanceof DamagedRelease) return error
    throw error
  })
  if (storedRelease !== undefined && !(storedRelease instanceof DamagedRelease)) return storedRelease
  const { version: releaseVersion } = currentRecord.release
  const problem = `Release ${releaseVersion} cannot be started: ${storedRelease?.message ?? 'its folder is missing'}.`
  throw new StartError(`${problem} ${recoveryAdvice(releasesDir, checkout)}`, { cause: storedRelease })
}

export const recoveryAdvice = (releasesDir: string, checkout: Checkout): string =>
  `Remove ${currentFile(releasesDir)} to start with version ${checkout.version} of this folder; then apply the update again.`

async function readCurrent(releasesDir: string, checkout: Checkout): Promise<z.infer<typeof Current> | undefined> {
  try {
    return Current.parse(JSON.parse(await readFile(currentFile(releasesDir), 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const problem = `${currentFile(releasesDir)} cannot be read.`
    throw new StartError(`${problem} ${recoveryAdvice(releasesDir, checkout)}`, { cause: error })
  }
}

function replacementReason(
  { release, checkout: appliedCheckout }: z.infer<typeof Current>,
  { version: releaseVersion, infrastructure }: Checkout,
): string | undefined {
  if (appliedCheckout.infrastructure !== infrastructure)
    return `version ${releaseVersion} of this folder requires another infrastructure`
  // Keeps an older release of the same checkout, which is a deliberate rollback.
  const isOtherCheckout = appliedCheckout.version !== releaseVersion
  return isOtherCheckout && gte(releaseVersion, release.version)
    ? `version ${releaseVersion} of this folder is at least as new`
    : undefined
}
