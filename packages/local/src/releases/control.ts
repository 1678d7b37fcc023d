import { type FetchedRelease, isSameRelease, type InstalledRelease } from '@platform/core/updates/record'
import { TargetError, type UpdateTarget } from '@platform/worker/updates/target/port'
import { writeCurrentRelease } from './current.ts'
import { listDraftedFunctions, draftFunction, folderName, removeAllBut } from './folder.ts'
import type { TrafficSplit } from './traffic-split.ts'
import { isFetched, findMissingFunctions, sealRelease, type StagingOptions, startRelease } from './staging.ts'
import { unpack } from './zip.ts'

/** `UpdateTarget` for threads of this process; a release arrives one function at a time. */
export interface UpdateControl extends Pick<
  UpdateTarget,
  'current' | 'invoke' | 'unanswered' | 'shift' | 'commit' | 'revert'
> {
  missing: (release: InstalledRelease, functionNames: readonly string[]) => Promise<string[]>
  add: (release: FetchedRelease, functionName: string, zip: Uint8Array) => Promise<void>
  /** Starts a complete release, which gets no traffic yet. */
  ready: (release: InstalledRelease, functionNames: readonly string[]) => Promise<void>
  /** Removes the stored releases that are no longer needed. Does nothing before the first commit of this process. */
  tidy: () => Promise<void>
}

/** Number of old versions that may complete their work while another is staged; each uses memory. */
const maxDraining = 1

/** Performs calls one at a time, except `current`, `invoke` and `unanswered`. */
export function createControl(options: StagingOptions & { trafficSplit: TrafficSplit }): UpdateControl {
  const { releasesDir, checkout, trafficSplit } = options
  const inSequence = createSequence()
  let retainedReleases: readonly InstalledRelease[] = []
  let stagingRelease: InstalledRelease | undefined

  const isCurrent = (release: InstalledRelease): boolean => isSameRelease(trafficSplit.currentRelease(), release)
  const isLoaded = (release: InstalledRelease): boolean => trafficSplit.invokeOf(release) !== undefined
  const storeCurrent = (release: InstalledRelease) =>
    writeCurrentRelease(releasesDir, isFetched(release) ? release : undefined, checkout)

  const stage = async (release: InstalledRelease) => {
    if (isLoaded(release) || trafficSplit.restage(release)) return
    trafficSplit.revert()
    if (trafficSplit.drainingReleases().length > maxDraining) {
      throw new TargetError('Functions of earlier releases have not ended yet. Try again in a few minutes.')
    }
    trafficSplit.stage(await startRelease(options, release))
  }

  const tidy = async () => {
    // Before the first commit, it is unknown which releases are needed.
    if (retainedReleases.length === 0) return
    const neededReleases = [
      ...retainedReleases,
      stagingRelease,
      trafficSplit.currentRelease(),
      trafficSplit.stagedRelease(),
      ...trafficSplit.drainingReleases(),
    ]
    const names = neededReleases.flatMap((each) => (each !== undefined && isFetched(each) ? folderName(each) : []))
    await removeAllBut(releasesDir, new Set(names))
  }

  return {
    current: async () => trafficSplit.currentRelease(),
    missing: (release, functionNames) =>
      inSequence(async () => {
        stagingRelease = release
        if (!isFetched(release) || isLoaded(release)) return []
        return findMissingFunctions(options, release, functionNames)
      }),
    add: (release, name, zip) =>
      inSequence(async () => {
        const isDrafted = (await listDraftedFunctions(releasesDir, release)).has(name)
        if (!isDrafted) await draftFunction(releasesDir, { release, name, files: unpack(zip) })
      }),
    ready: (release, functionNames) =>
      inSequence(async () => {
        if (isFetched(release) && !isLoaded(release)) await sealRelease(options, release, functionNames)
        await stage(release)
      }),
    invoke: async (release, functionName, event) => {
      const invoke = trafficSplit.invokeOf(release) ?? throwNotStaged(release)
      return invoke(functionName, event).catch(throwTargetError)
    },
    unanswered: async (release, sinceMs) => trafficSplit.unanswered(release, sinceMs),
    shift: (release, share) =>
      inSequence(async () => {
        if (isCurrent(release)) return
        if (!isLoaded(release)) throwNotStaged(release)
        trafficSplit.shift(share)
      }),
    commit: (release, before) =>
      inSequence(async () => {
        if (!isLoaded(release)) throwNotStaged(release)
        await storeCurrent(release)
        retainedReleases = [release, before]
        if (!isCurrent(release)) trafficSplit.commit()
        await tidy()
      }),
    revert: (_release, before) =>
      inSequence(async () => {
        const isAlreadyCurrent = isCurrent(before)
        if (!isAlreadyCurrent) await stage(before)
        await storeCurrent(before)
        if (isAlreadyCurrent) trafficSplit.revert()
        else trafficSplit.commit()
      }),
    tidy: () => inSequence(tidy),
  }
}

const throwNotStaged = ({ version }: InstalledRelease): never => {
  throw new TargetError(`Release ${version} is not staged.`)
}

function throwTargetError(cause: unknown): never {
  throw new TargetError(cause instanceof Error ? cause.message : String(cause), { cause })
}

function createSequence(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let lastWork: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = lastWork.then(work)
    lastWork = result.catch(() => undefined)
    return result
  }
}
