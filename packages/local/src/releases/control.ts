import { type FetchedRelease, isSameRelease, type InstalledRelease } from '@platform/core/updates/record'
import { TargetError, type UpdateTarget } from '@platform/worker/updates/target/port'
import { writeCurrentRelease } from './current.ts'
import { draftedFunctions, draftFunction, folderName, removeAllBut } from './folder.ts'
import type { TrafficSplit } from './traffic-split.ts'
import { isFetched, missingFunctions, sealRelease, type StagingOptions, startRelease } from './staging.ts'
import { unpack } from './zip.ts'

/** The update operations for functions; a release arrives one function at a time. */
export interface UpdateControl extends Pick<
  UpdateTarget,
  'current' | 'invoke' | 'unanswered' | 'shift' | 'commit' | 'revert'
> {
  /** The functions of a release that are not added yet. */
  missing: (release: InstalledRelease, functionNames: readonly string[]) => Promise<string[]>
  add: (release: FetchedRelease, functionName: string, zip: Uint8Array) => Promise<void>
  /** Starts a complete release beside the current one. */
  ready: (release: InstalledRelease, functionNames: readonly string[]) => Promise<void>
  /** Removes releases that are not needed after a commit. */
  tidy: () => Promise<void>
}

/** Versions that may complete their work while another one is staged; each uses memory. */
const leavingLimit = 1

/** Changes the releases of a traffic split, one call at a time. */
export function createControl(options: StagingOptions & { trafficSplit: TrafficSplit }): UpdateControl {
  const { releasesDir, checkout, trafficSplit } = options
  const inTurn = createTurn()
  let kept: readonly InstalledRelease[] = []
  let expected: InstalledRelease | undefined

  const isCurrent = (release: InstalledRelease): boolean => isSameRelease(trafficSplit.current(), release)
  const isThere = (release: InstalledRelease): boolean => trafficSplit.invokeOf(release) !== undefined
  const note = (release: InstalledRelease) =>
    writeCurrentRelease(releasesDir, isFetched(release) ? release : undefined, checkout)

  const getReady = async (release: InstalledRelease) => {
    if (isThere(release) || trafficSplit.bringBack(release)) return
    trafficSplit.revert()
    if (trafficSplit.leaving().length > leavingLimit) {
      throw new TargetError('Functions of earlier releases have not ended yet. Try again in a few minutes.')
    }
    trafficSplit.stage(await startRelease(options, release))
  }

  const tidy = async () => {
    // No commit has decided yet what to keep.
    if (kept.length === 0) return
    const needed = [...kept, expected, trafficSplit.current(), trafficSplit.staged(), ...trafficSplit.leaving()]
    const names = needed.flatMap((each) => (each !== undefined && isFetched(each) ? folderName(each) : []))
    await removeAllBut(releasesDir, new Set(names))
  }

  return {
    current: async () => trafficSplit.current(),
    missing: (release, functionNames) =>
      inTurn(async () => {
        expected = release
        if (!isFetched(release) || isThere(release)) return []
        return missingFunctions(options, release, functionNames)
      }),
    add: (release, name, zip) =>
      inTurn(async () => {
        const isDrafted = (await draftedFunctions(releasesDir, release)).has(name)
        if (!isDrafted) await draftFunction(releasesDir, { release, name, files: unpack(zip) })
      }),
    ready: (release, functionNames) =>
      inTurn(async () => {
        if (isFetched(release) && !isThere(release)) await sealRelease(options, release, functionNames)
        await getReady(release)
      }),
    invoke: async (release, functionName, event) => {
      const invoke = trafficSplit.invokeOf(release) ?? requireStaged(release)
      return invoke(functionName, event).catch(asTargetFailure)
    },
    unanswered: async (release, sinceMs) => trafficSplit.unanswered(release, sinceMs),
    shift: (release, share) =>
      inTurn(async () => {
        if (isCurrent(release)) return
        if (!isThere(release)) requireStaged(release)
        trafficSplit.shift(share)
      }),
    commit: (release, before) =>
      inTurn(async () => {
        if (!isThere(release)) requireStaged(release)
        await note(release)
        kept = [release, before]
        if (!isCurrent(release)) trafficSplit.commit()
        await tidy()
      }),
    revert: (_release, before) =>
      inTurn(async () => {
        const isBack = isCurrent(before)
        if (!isBack) await getReady(before)
        await note(before)
        if (isBack) trafficSplit.revert()
        else trafficSplit.commit()
      }),
    tidy: () => inTurn(tidy),
  }
}

const requireStaged = ({ version }: InstalledRelease): never => {
  throw new TargetError(`Release ${version} is not staged.`)
}

function asTargetFailure(cause: unknown): never {
  throw new TargetError(cause instanceof Error ? cause.message : String(cause), { cause })
}

function createTurn(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const own = last.then(work)
    last = own.catch(() => undefined)
    return own
  }
}
