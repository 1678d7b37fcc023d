import { type InstalledRelease, isSameRelease } from '@platform/core/updates/record'
import {
  type TrafficPercent,
  type StagedRelease,
  TargetError,
  type InFlightStats,
  type UpdateTarget,
} from '@platform/worker/updates/target/port'

export type Behaviour = (functionName: string, event: any) => unknown

export interface TargetCall {
  name: keyof UpdateTarget
  input: readonly unknown[]
}

export const good =
  (version: string): Behaviour =>
  (_, event) =>
    event.platformProbe ? { version } : { statusCode: 200 }

const keyOf = ({ version, digest }: InstalledRelease): string => `${version} ${digest}`

export class MemoryTarget {
  serving: InstalledRelease
  readonly staged = new Map<string, ReadonlyMap<string, Uint8Array>>()
  share: { release: InstalledRelease; share: TrafficPercent } | undefined
  readonly behaviours = new Map<string, Behaviour>()
  readonly shifts: string[] = []
  /** Version → function that returns its requests without a response. */
  readonly unanswered = new Map<string, (sinceMs: number) => InFlightStats>()
  hook: { before?: (call: TargetCall) => Promise<void>; after?: (call: TargetCall) => Promise<void> } = {}

  constructor(serving: InstalledRelease) {
    this.serving = serving
    this.staged.set(keyOf(serving), new Map())
  }

  /** The release that gets all traffic; undefined while traffic is split. */
  get release(): InstalledRelease | undefined {
    return this.share === undefined ? this.serving : undefined
  }

  readonly port: UpdateTarget = {
    current: () => this.#call('current', [], () => this.serving),
    stage: (release) =>
      this.#call('stage', [release], async () => {
        if (!this.staged.has(keyOf(release))) this.staged.set(keyOf(release), await this.#zipsOf(release))
      }),
    invoke: (release, functionName, event) =>
      this.#call('invoke', [release, functionName, event], () => {
        this.#require(release)
        return (this.behaviours.get(release.version) ?? good(release.version))(functionName, event)
      }),
    unanswered: (release, sinceMs) =>
      this.#call('unanswered', [release, sinceMs], () => this.unanswered.get(release.version)?.(sinceMs)),
    shift: (release, share, isBack) =>
      this.#call('shift', [release, share, isBack], () => {
        this.#require(release)
        if (isSameRelease(this.serving, release)) return
        this.shifts.push(`${release.version} ${share}`)
        this.share = share === 0 ? undefined : { release, share }
      }),
    commit: (release, before) =>
      this.#call('commit', [release, before], () => {
        this.#require(release)
        Object.assign(this, { serving: release, share: undefined })
        const keptKeys = new Set([keyOf(release), keyOf(before)])
        for (const key of this.staged.keys()) if (!keptKeys.has(key)) this.staged.delete(key)
      }),
    revert: (release, before) =>
      this.#call('revert', [release, before], () => {
        Object.assign(this, { serving: before, share: undefined })
      }),
  }

  async #call<Result>(
    name: keyof UpdateTarget,
    input: readonly unknown[],
    perform: () => Result | Promise<Result>,
  ): Promise<Result> {
    await this.hook.before?.({ name, input })
    const result = await perform()
    await this.hook.after?.({ name, input })
    return result
  }

  async #zipsOf({ functionNames, fetchFunction }: StagedRelease): Promise<ReadonlyMap<string, Uint8Array>> {
    return new Map(await Promise.all(functionNames.map(async (name) => [name, await fetchFunction(name)] as const)))
  }

  #require(release: InstalledRelease): void {
    if (!this.staged.has(keyOf(release))) throw new TargetError('It is not staged.', { isFinal: true })
  }
}
