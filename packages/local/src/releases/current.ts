import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '@platform/contract/manifest'
import { type FetchedRelease, releaseIdentity } from '@platform/core/updates/release-identity'
import gte from 'semver/functions/gte.js'
import * as z from 'zod'
import type { Log } from '../log.ts'
import { StartError } from '../start-error.ts'
import { removeFile, renameDurably, replaceFile } from './durable.ts'
import { DamagedRelease, type KeptRelease, readRelease } from './folder.ts'

/** Which release serves: `current.json` names it. Without that file the functions of the checkout do. */

/** The code that the runner itself is. */
export interface Checkout {
  version: string
  /** What the functions need around them; see core/update/infrastructure.ts. */
  infrastructure: string
}

const Current = z.object({
  release: z.object({ version, repository: z.string().exactOptional(), digest: z.string() }),
  /** What was here when the release was applied. */
  checkout: z.object({ version, infrastructure: z.string() }),
})

const fileIn = (releasesDir: string): string => join(releasesDir, 'current.json')
const asideIn = (releasesDir: string): string => join(releasesDir, 'current-set-aside.json')

/** Notes which release serves from the next start on; undefined: the functions of the checkout. All of it or nothing is written. */
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
 * The release that serves from the start on; undefined where the functions of the checkout do. Those do as well where a newer
 * checkout has come since the release was applied, or one with another infrastructure: the release is set aside. Throws
 * `StartFailure` for a release that is not as it was.
 */
export async function releaseAtStart(
  releasesDir: string,
  checkout: Checkout,
  log: Log,
): Promise<KeptRelease | undefined> {
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
  // An older release that was gone back to on purpose stays.
  const isNew = then.version !== itsVersion
  return isNew && gte(itsVersion, release.version) ? `version ${itsVersion} of this folder is as new` : undefined
}
