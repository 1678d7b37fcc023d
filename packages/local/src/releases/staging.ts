import { type FetchedRelease, releaseIdentity, type InstalledRelease } from '@platform/core/updates/record'
import { TargetError } from '@platform/worker/updates/target/port'
import type { Checkout } from './current.ts'
import { DamagedRelease, listDraftedFunctions, type StoredRelease, readRelease, sealDraft } from './folder.ts'
import type { Version } from './traffic-split.ts'

export interface StagingOptions {
  releasesDir: string
  checkout: Checkout
  functionNames: readonly string[]
  /** Starts the threads of a release, or of the checkout. Rejects if a function cannot be imported. */
  start: (release?: StoredRelease) => Promise<Version>
}

/** Whether a release was fetched from a repository, unlike the functions of the checkout. */
export const isFetched = (release: InstalledRelease): release is FetchedRelease => release.digest !== undefined

/** Returns the functions that are not stored yet. Throws `TargetError` if the release lacks a required function. */
export async function findMissingFunctions(
  { releasesDir, functionNames: requiredNames }: StagingOptions,
  release: FetchedRelease,
  functionNames: readonly string[],
): Promise<string[]> {
  const missingName = requiredNames.find((name) => !functionNames.includes(name))
  if (missingName !== undefined) throw finalError(`Release ${release.version} has no function ${missingName}.`)
  // A damaged release counts as missing, so that it is fetched again.
  const storedRelease = await readRelease(releasesDir, release).catch(ignoreDamage)
  if (storedRelease !== undefined) return []
  const draftedNames = await listDraftedFunctions(releasesDir, release)
  return functionNames.filter((name) => !draftedNames.has(name))
}

/** Turns the draft into a release, unless the release is already complete. */
export async function sealRelease(
  options: StagingOptions,
  release: FetchedRelease,
  functionNames: readonly string[],
): Promise<void> {
  const { releasesDir, checkout } = options
  const [missing] = await findMissingFunctions(options, release, functionNames)
  if (missing !== undefined) throw new TargetError(`Release ${release.version} is not staged: ${missing} is missing.`)
  if (await readRelease(releasesDir, release).catch(ignoreDamage)) return
  await sealDraft(releasesDir, {
    ...releaseIdentity(release),
    infrastructure: checkout.infrastructure,
    functionNames: [...functionNames],
  })
}

/** Throws a final `TargetError` if the release is missing or damaged, needs another infrastructure or cannot start. */
export async function startRelease(options: StagingOptions, release: InstalledRelease): Promise<Version> {
  const storedRelease = await readStored(options, release)
  return options.start(storedRelease).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new TargetError(`Release ${release.version} does not start: ${reason}`, { isFinal: true, cause })
  })
}

async function readStored(
  { releasesDir, checkout }: StagingOptions,
  release: InstalledRelease,
): Promise<StoredRelease | undefined> {
  if (!isFetched(release)) {
    if (release.version === checkout.version) return undefined
    throw finalError(`Version ${release.version} is no longer available; this folder has version ${checkout.version}.`)
  }
  const storedRelease = await readRelease(releasesDir, release).catch((cause: unknown) => {
    throw cause instanceof DamagedRelease ? finalError(cause.message, cause) : cause
  })
  if (storedRelease === undefined) throw finalError(`Release ${release.version} is no longer stored.`)
  if (storedRelease.infrastructure === checkout.infrastructure) return storedRelease
  throw finalError(
    `Release ${release.version} was made for another infrastructure than version ${checkout.version} has.`,
  )
}

const finalError = (message: string, cause?: unknown): TargetError => new TargetError(message, { isFinal: true, cause })

function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof DamagedRelease)) throw error
}
