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

/** The current release: `current.json` names it. Without that file it is the checkout. */

/** The code of the runner itself. */
export interface Checkout {
  version: string
  /** The infrastructure version that the functions require; see core/updates. */
  infrastructure: string
}

const Current = z.object({
  release: z.object({ version, repository: z.string().exactOptional(), digest: z.string() }),
  /** The checkout when the release was applied. */
  checkout: z.object({ version, infrastructure: z.string() }),
})

const fileIn = (releasesDir: string): string => join(releasesDir, 'current.json')
const asideIn = (releasesDir: string): string => join(releasesDir, 'current-set-aside.json')

/** Stores atomically the release to start with; undefined for the functions of the checkout. */
export async function writeCurrentRelease(
  releasesDir: string,
  release: FetchedRelease | undefined,
  checkout: Checkout,
): Promise<void> {
  if (release === undefined) return removeFile(fileIn(releasesDir))
  const content = { release: releaseIdentity(release), checkout }
  await replaceFile(fileIn(releasesDir), `${JSON.stringify(content, null, 2)}\n`)
}

/**
 * The release to start with; undefined for the functions of the checkout. These are also used if a newer checkout, or
 * one with another infrastructure, has replaced the one the release was applied to. Throws `StartError` for a damaged
 * release.
 */
export async function releaseAtStart(
  releasesDir: string,
  checkout: Checkout,
  log: Log,
): Promise<StoredRelease | undefined> {
  const current = await readCurrent(releasesDir, checkout)
  if (current === undefined) return undefined
  const reason = outrankedBy(current, checkout)
  if (reason !== undefined) {
    await renameDurably(fileIn(releasesDir), asideIn(releasesDir))
    const { version: itsVersion } = current.release
    log(`release ${itsVersion} is set aside: ${reason}`, { release: itsVersion, checkout: checkout.version })
    return undefined
  }
  const kept = await readRelease(releasesDir, current.release).catch((error: unknown) => {
    if (error instanceof DamagedRelease) return error
    throw error
  })
  if (kept !== undefined && !(kept instanceof DamagedRelease)) return kept
  const { version: itsVersion } = current.release
  const problem = `Release ${itsVersion} cannot be started: ${kept?.message ?? 'its folder is missing'}.`
  throw new StartError(`${problem} ${recoveryAdvice(releasesDir, checkout)}`, { cause: kept })
}

/** What to do with a release that does not start. */
export const recoveryAdvice = (releasesDir: string, checkout: Checkout): string =>
  `Remove ${fileIn(releasesDir)} to start with version ${checkout.version} of this folder; then apply the update again.`

async function readCurrent(releasesDir: string, checkout: Checkout): Promise<z.infer<typeof Current> | undefined> {
  try {
    return Current.parse(JSON.parse(await readFile(fileIn(releasesDir), 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const problem = `${fileIn(releasesDir)} cannot be read.`
    throw new StartError(`${problem} ${recoveryAdvice(releasesDir, checkout)}`, { cause: error })
  }
}

function outrankedBy(
  { release, checkout: then }: z.infer<typeof Current>,
  { version: itsVersion, infrastructure }: Checkout,
): string | undefined {
  if (then.infrastructure !== infrastructure) return `version ${itsVersion} of this folder has another infrastructure`
  // Keeps an older release after a deliberate rollback.
  const isNew = then.version !== itsVersion
  return isNew && gte(itsVersion, release.version) ? `version ${itsVersion} of this folder is as new` : undefined
}
