import { type InstalledRelease } from '@platform/core/updates/record'

/** How much of what comes in the staged release gets, in percent. */
export type TrafficPercent = 0 | 10 | 50 | 100

/** A staged release: the zip of each of its functions, fetched and checked when it is asked for. */
export interface StagedRelease extends InstalledRelease {
  functionNames: readonly string[]
  fetchFunction: (functionName: string) => Promise<Uint8Array>
}

/** What a host knows of invocations that got no answer of the function's own: it threw, took too long, or died. */
export interface InFlightStats {
  /** Those that ended so, but for failures that the function has counted itself. */
  faults: number
  /** When the oldest one began that is under way, of functions that have 30 seconds; absent where there is none. */
  oldestMs?: number
}

/** Why a target cannot do what it was asked for. The message is for people. */
export class TargetError extends Error {
  override readonly name = 'TargetFailure'
  /** Trying again would not help. */
  readonly isFinal: boolean

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}

/**
 * What the platform's functions run on, as far as updates change it (D51). Each call may be repeated, come again after a kill
 * at any place, or find that it was done already. Throws `TargetFailure`.
 */
export interface UpdateTarget {
  /** What everything goes to but the share of a staged release. */
  current: () => Promise<InstalledRelease>
  /** Makes a release ready beside what serves, which goes on untouched; a release of before may be ready still. */
  stage: (release: StagedRelease) => Promise<void>
  /**
   * Runs a function of a staged release and answers what it answers; rejects where it fails, and after 30 seconds. That counts
   * against the release, unless `current` rejects too.
   */
  invoke: (release: InstalledRelease, functionName: string, event: unknown) => Promise<unknown>
  /**
   * What came in since then and a release has not answered; calls of `invoke` do not count. Undefined where the host cannot
   * tell in time.
   */
  unanswered: (release: InstalledRelease, sinceMs: number) => Promise<InFlightStats | undefined>
  /**
   * Gives a staged release its share of what comes in; 0 takes it away. Functions that are undivided follow the others at 100,
   * and go first where the way `isBack` to an older release.
   */
  shift: (release: InstalledRelease, share: TrafficPercent, isBack?: boolean) => Promise<void>
  /** The release serves alone and for good; `before` is kept, so that a rollback need not fetch it, all others go. */
  commit: (release: InstalledRelease, before: InstalledRelease) => Promise<void>
  /** Only `before` serves, as if nothing had been staged. */
  revert: (release: InstalledRelease, before: InstalledRelease) => Promise<void>
}
