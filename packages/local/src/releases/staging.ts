import { type FetchedRelease, releaseIdentity, type InstalledRelease } from '@platform/core/updates/record'
import { TargetError } from '@platform/worker/updates/target/port'
import type { Checkout } from './current.ts'
import { DamagedRelease, draftedFunctions, type StoredRelease, readRelease, sealDraft } from './folder.ts'
import type { Version } from './traffic-split.ts'

export interface StagingOptions {
  releasesDir: string
  checkout: Checkout
  /** Every function that the platform calls. */
  functionNames: readonly string[]
  /** Starts the threads of a release, or of the checkout; rejects if a function cannot be imported. */
  start: (release?: StoredRelease) => Promise<Version>
}

/** Whether a release came from a repository, unlike the functions of the checkout. */
export const isFetched = (release: InstalledRelease): release is FetchedRelease => release.digest !== undefined

/**
 * The functions of a release that are not stored yet. Throws `TargetError` if the release lacks a required function.
 */
export async function missingFunctions(
  { releasesDir, functionNames: called }: StagingOptions,
  release: FetchedRelease,
  functionNames: readonly string[],
): Promise<string[]> {
  const lacking = called.find((name) => !functionNames.includes(name))
  if (lacking !== undefined) throw final(`Release ${release.version} has no function ${lacking}.`)
  // A damaged one is fetched again.
  const kept = await readRelease(releasesDir, release).catch(ignoreDamage)
  if (kept !== undefined) return []
  const drafted = await draftedFunctions(releasesDir, release)
  return functionNames.filter((name) => !drafted.has(name))
}

/** Completes a release from its draft, unless it is already complete. */
export async function sealRelease(
  options: StagingOptions,
  release: FetchedRelease,
  functionNames: readonly string[],
): Promise<void> {
  const { releasesDir, checkout } = options
  const [missing] = await missingFunctions(options, release, functionNames)
  if (missing !== undefined) throw new TargetError(`Release ${release.version} is not staged: ${missing} is missing.`)
  if (await readRelease(releasesDir, release).catch(ignoreDamage)) return
  await sealDraft(releasesDir, {
    ...releaseIdentity(release),
    infrastructure: checkout.infrastructure,
    functionNames: [...functionNames],
  })
}

/** Starts a stored release. Throws a final `TargetError` if it is missing or damaged, or does not start. */
export async function startRelease(options: StagingOptions, release: InstalledRelease): Promise<Version> {
  const kept = await onDisk(options, release)
  return options.start(kept).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new TargetError(`Release ${release.version} does not start: ${reason}`, { isFinal: true, cause })
  })
}

async function onDisk(
  { releasesDir, checkout }: StagingOptions,
  release: InstalledRelease,
): Promise<StoredRelease | undefined> {
  if (!isFetched(release)) {
    if (release.version === checkout.version) return undefined
    throw final(`Version ${release.version} is not here any more; the folder holds ${checkout.version}.`)
  }
  const kept = await readRelease(releasesDir, release).catch((cause: unknown) => {
    throw cause instanceof DamagedRelease ? final(cause.message, cause) : cause
  })
  if (kept === undefined) throw final(`Release ${release.version} is not here any more.`)
  if (kept.infrastructure === checkout.infrastructure) return kept
  throw final(`Release ${release.version} was made for another infrastructure than version ${checkout.version} has.`)
}

const final = (message: string, cause?: unknown): TargetError => new TargetError(message, { isFinal: true, cause })

function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof DamagedRelease)) throw error
}
