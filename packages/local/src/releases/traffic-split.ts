import { isSingleVersion } from '@platform/core/updates/function-names'
import { isSameRelease } from '@platform/core/updates/release-identity'
import type { InstalledRelease } from '@platform/core/updates/record'
import type { InFlightStats } from '@platform/worker/updates/target/port'
import type { FunctionPool } from '../functions/pool.ts'
import { trackInvocations, type InFlightInvocations } from './in-flight.ts'

/** A set of functions that can serve: the checkout's own, or those of a release. */
export interface Version {
  release: InstalledRelease
  pool: Pick<FunctionPool, 'invoke' | 'close'>
}

/** Divides invocations between the version that serves and one that is to follow it. */
export interface TrafficSplit {
  /** Runs a function of the version whose turn it is. */
  invoke: FunctionPool['invoke']
  /** Runs a function of the version that serves, or of the one that is staged, and counts it nowhere; undefined where it is neither. */
  invokeOf: (release: InstalledRelease) => FunctionPool['invoke'] | undefined
  /** What `invoke` has got no answer to from a version that has not gone; undefined for any other. */
  unanswered: (release: InstalledRelease, sinceMs: number) => InFlightStats | undefined
  /** What serves but for the share of what is staged. */
  current: () => InstalledRelease
  staged: () => InstalledRelease | undefined
  /** Versions that end what they have begun. */
  leaving: () => readonly InstalledRelease[]
  /** Puts a version beside the one that serves; it gets nothing yet. One that was there before leaves. */
  stage: (version: Version) => void
  /** Stages a version that is leaving and has not gone yet; answers whether there is such a one. */
  bringBack: (release: InstalledRelease) => boolean
  /** Gives the staged version so many percent of the invocations of each function; of one that is undivided all or nothing. */
  shift: (share: number) => void
  /** What is staged serves alone; what served leaves. */
  commit: () => void
  /** What is staged leaves. */
  revert: () => void
  /** Ends all versions; what runs on them fails. */
  close: () => Promise<void>
}

interface Member extends Version {
  underWay: number
  invocations: InFlightInvocations
}

/**
 * Starts with one version. One that leaves gets nothing any more, ends what it has begun, however long that takes, and is closed
 * then; `onGone` hears of it.
 */
export function createTrafficSplit(first: Version, onGone: (release: InstalledRelease) => void): TrafficSplit {
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
      onGone(member.release)
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
 * Says of each invocation whether it is the staged version's: of any hundred of one function exactly `share`, spread evenly, so
 * that a function that is called seldom gets its share like all others.
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
