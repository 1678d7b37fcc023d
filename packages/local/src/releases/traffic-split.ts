import { isSingleVersion } from '@platform/core/updates/function-names'
import { isSameRelease, type InstalledRelease } from '@platform/core/updates/record'
import type { InFlightStats } from '@platform/worker/updates/target/port'
import type { FunctionPool } from '../functions/pool.ts'
import { trackInvocations, type InFlightInvocations } from './in-flight.ts'

/** A set of functions that can serve: the checkout's, or those of a release. */
export interface Version {
  release: InstalledRelease
  pool: Pick<FunctionPool, 'invoke' | 'close'>
}

/** Divides invocations between the current version and a staged one. */
export interface TrafficSplit {
  /** Runs a function of the selected version. */
  invoke: FunctionPool['invoke']
  /** Runs a function of the current or the staged version without counting it; undefined for any other. */
  invokeOf: (release: InstalledRelease) => FunctionPool['invoke'] | undefined
  /** The invocations without a response of a running version; undefined for any other. */
  unanswered: (release: InstalledRelease, sinceMs: number) => InFlightStats | undefined
  /** The version that serves all traffic except the staged share. */
  current: () => InstalledRelease
  staged: () => InstalledRelease | undefined
  /** Versions that are completing their work. */
  leaving: () => readonly InstalledRelease[]
  /** Adds a version without traffic beside the current one. An earlier staged version drains. */
  stage: (version: Version) => void
  /** Stages a version that is still draining; returns whether there is one. */
  bringBack: (release: InstalledRelease) => boolean
  /**
   * Gives the staged version this percentage of the invocations of each function; an undivided function moves at 100 %.
   */
  shift: (share: number) => void
  /** The staged version serves all traffic; the previous one drains. */
  commit: () => void
  /** The staged version drains. */
  revert: () => void
  /** Ends all versions; running invocations fail. */
  close: () => Promise<void>
}

interface Member extends Version {
  underWay: number
  invocations: InFlightInvocations
}

/**
 * Starts with one version. A draining version gets no new invocations and closes after its last one; `onDrained` is
 * called then.
 */
export function createTrafficSplit(first: Version, onDrained: (release: InstalledRelease) => void): TrafficSplit {
  const memberOf = (version: Version): Member => ({ ...version, underWay: 0, invocations: trackInvocations() })
  let serving = memberOf(first)
  let next: Member | undefined
  const leaving = new Set<Member>()
  const closing = new Set<Promise<void>>()
  let turns = createTurns(0)

  const closeIfIdle = (member: Member) => {
    if (member.underWay > 0 || !leaving.delete(member)) return
    const closed = member.pool.close().finally(() => {
      closing.delete(closed)
      onDrained(member.release)
    })
    closing.add(closed)
  }
  const retire = (member: Member | undefined) => {
    if (member === undefined) return
    leaving.add(member)
    closeIfIdle(member)
  }
  const replaceNext = (member: Member | undefined) => {
    const before = next
    next = member
    turns = createTurns(0)
    retire(before)
  }

  const invokeOn = async (member: Member, ...given: Parameters<FunctionPool['invoke']>) => {
    member.underWay += 1
    try {
      return await member.pool.invoke(...given)
    } finally {
      member.underWay -= 1
      closeIfIdle(member)
    }
  }

  return {
    invoke: (functionName, ...given) => {
      const member = next !== undefined && turns(functionName) ? next : serving
      return member.invocations.follow(functionName, () => invokeOn(member, functionName, ...given))
    },
    invokeOf: (release) => {
      const member = [serving, next].find((each) => each !== undefined && isSameRelease(each.release, release))
      return member && ((...given) => invokeOn(member, ...given))
    },
    unanswered: (release, sinceMs) =>
      [serving, next, ...leaving]
        .find((each) => each !== undefined && isSameRelease(each.release, release))
        ?.invocations.unanswered(sinceMs),
    current: () => serving.release,
    staged: () => next?.release,
    leaving: () => [...leaving].map(({ release }) => release),
    stage: (version) => replaceNext(memberOf(version)),
    bringBack: (release) => {
      const member = [...leaving].find((each) => isSameRelease(each.release, release))
      if (member === undefined) return false
      leaving.delete(member)
      replaceNext(member)
      return true
    },
    shift: (share) => {
      turns = createTurns(share)
    },
    commit: () => {
      if (next === undefined) return
      const before = serving
      serving = next
      next = undefined
      retire(before)
    },
    revert: () => replaceNext(undefined),
    close: async () => {
      const members = [serving, ...leaving, ...(next ? [next] : [])]
      leaving.clear()
      await Promise.all([...members.map(({ pool }) => pool.close()), ...closing])
    },
  }
}

/**
 * Selects the staged version for exactly `share` of any hundred invocations of a function, evenly distributed, also for
 * rarely called functions.
 */
function createTurns(share: number): (functionName: string) => boolean {
  const credits = new Map<string, number>()
  return (functionName) => {
    if (isSingleVersion(functionName)) return share === 100
    const credit = (credits.get(functionName) ?? 50) + share
    const isDue = credit >= 100
    credits.set(functionName, isDue ? credit - 100 : credit)
    return isDue
  }
}
