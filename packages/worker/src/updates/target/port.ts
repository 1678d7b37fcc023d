import type { InstalledRelease } from '@platform/core/updates/record'

export type TrafficPercent = 0 | 10 | 50 | 100

/** A staged release. Each function's zip is fetched and verified on demand. */
export interface StagedRelease extends InstalledRelease {
  functionNames: readonly string[]
  fetchFunction: (functionName: string) => Promise<Uint8Array>
}

/**
 * Invocations without a response from the function, as counted by its host: the function threw, timed out or crashed.
 */
export interface InFlightStats {
  /** Invocations that ended this way, except for failures that the function has counted itself. */
  faults: number
  /** Start of the oldest invocation in progress, of functions with a 30-second timeout; absent if there is none. */
  oldestMs?: number
}

/** Thrown if the target cannot perform a call. The message is for users. */
export class TargetError extends Error {
  override readonly name = 'TargetError'
  /** Whether a retry would fail too. */
  readonly isFinal: boolean

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}

/**
 * The host of the platform's functions, as far as updates change it. Each call is idempotent: it may be repeated, even
 * after a kill at any point. All calls throw `TargetError`.
 */
export interface UpdateTarget {
  /** Returns the release that receives all traffic except the share of a staged release. */
  current: () => Promise<InstalledRelease>
  /** Prepares a release without affecting the serving one. A release that was staged before may still be ready. */
  stage: (release: StagedRelease) => Promise<void>
  /**
   * Runs a function of a staged release and returns its result. Throws if the function fails or does not respond within
   * 30 seconds. The failure counts against the release, unless `current` throws too.
   */
  invoke: (release: InstalledRelease, functionName: string, event: unknown) => Promise<unknown>
  /**
   * Counts the requests since `sinceMs` that a release has not answered, except `invoke` calls. Returns undefined if
   * the host cannot count them in time or does not run the release.
   */
  unanswered: (release: InstalledRelease, sinceMs: number) => Promise<InFlightStats | undefined>
  /**
   * Sets the traffic share of a staged release; 0 removes it. Single-version functions follow the others at 100, and go
   * first with `isBack`, when returning to an older release.
   */
  shift: (release: InstalledRelease, share: TrafficPercent, isBack?: boolean) => Promise<void>
  /** Makes the release serve alone. Keeps `before` for a rollback without a fetch; removes other applied releases. */
  commit: (release: InstalledRelease, before: InstalledRelease) => Promise<void>
  /** Makes only `before` serve, as if no release had been staged. */
  revert: (release: InstalledRelease, before: InstalledRelease) => Promise<void>
}
