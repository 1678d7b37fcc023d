import { isSingleVersion } from '@platform/core/updates/function-names'
import { isSameRelease, type InstalledRelease } from '@platform/core/updates/record'
import type { InFlightStats } from '@platform/worker/updates/target/port'
import type { FunctionPool } from '../functions/pool.ts'
import { trackInvocations, type InFlightInvocations } from './in-flight.ts'

/** Functions that can serve: those of the checkout or of a release. */
export interface Version {
  release: InstalledRelease
  pool: Pick<FunctionPool, 'invoke' | 'close'>
}

export interface TrafficSplit {
  invoke: FunctionPool['invoke']
  /** Returns undefined unless the version is current or staged. `unanswered` ignores the calls of the result. */
  invokeOf: (release: InstalledRelease) => FunctionPool['invoke'] | undefined
  /** Returns undefined for a version that does not run. */
  unanswered: (release: InstalledRelease, sinceMs: number) => InFlightStats | undefined
  /** Returns the version that serves all traffic except the share of the staged one. */
  currentRelease: () => InstalledRelease
  stagedRelease: () => InstalledRelease | undefined
  /** Returns the versions that get no new invocations but have running ones. */
  drainingReleases: () => readonly InstalledRelease[]
  /** Adds a version without traffic. An earlier staged version drains. */
  stage: (version: Version) => void
  /** Stages a version that is still draining. Returns false if there is none. */
  restage: (release: InstalledRelease) => boolean
  /** Sets the percentage of invocations that the staged version receives. Single-version functions move only at 100. */
  shift: (share: number) => void
  /** Gives all traffic to the staged version, and drains the previous one. */
  commit: () => void
  /** Gives all traffic to the current version, and drains the staged one. */
  revert: () => void
  /** Ends all versions. Running invocations fail. */
  close: () => Promise<void>
}

interface Member extends Version {
  pendingCount: number
  invocations: InFlightInvocations
}

/**
 * Starts with one version. A draining version gets no new invocations. It closes after its last invocation, and then
 * `onDrained` is called.
 */
export function createTrafficSplit(first: Version, onDrained: (release: InstalledRelease) => void): TrafficSplit {
  const memberOf = (version: Version): Member => ({ ...version, pendingCount: 0, invocations: trackInvocations() })
  let currentMember = memberOf(first)
  let stagedMember: Member | undefined
  const drainingMembers = new Set<Member>()
  const closings = new Set<Promise<void>>()
  let isSelected = createSelector(0)

  const closeIfIdle = (member: Member) => {
    if (member.pendingCount > 0 || !drainingMembers.delete(member)) return
    const closed = member.pool.close().finally(() => {
      closings.delete(closed)
      onDrained(member.release)
    })
    closings.add(closed)
  }
  const drain = (member: Member | undefined) => {
    if (member === undefined) return
    drainingMembers.add(member)
    closeIfIdle(member)
  }
  const replaceStaged = (member: Member | undefined) => {
    const before = stagedMember
    stagedMember = member
    isSelected = createSelector(0)
    drain(before)
  }

  const invokeOn = async (member: Member, ...args: Parameters<FunctionPool['invoke']>) => {
    member.pendingCount += 1
    try {
      return await member.pool.invoke(...args)
    } finally {
      member.pendingCount -= 1
      closeIfIdle(member)
    }
  }

  return {
    invoke: (functionName, ...args) => {
      const member = stagedMember !== undefined && isSelected(functionName) ? stagedMember : currentMember
      return member.invocations.track(functionName, () => invokeOn(member, functionName, ...args))
    },
    invokeOf: (release) => {
      const member = [currentMember, stagedMember].find(
        (each) => each !== undefined && isSameRelease(each.release, release),
      )
      return member && ((...args) => invokeOn(member, ...args))
    },
    unanswered: (release, sinceMs) =>
      [currentMember, stagedMember, ...drainingMembers]
        .find((each) => each !== undefined && isSameRelease(each.release, release))
        ?.invocations.unanswered(sinceMs),
    currentRelease: () => currentMember.release,
    stagedRelease: () => stagedMember?.release,
    drainingReleases: () => [...drainingMembers].map(({ release }) => release),
    stage: (version) => replaceStaged(memberOf(version)),
    restage: (release) => {
      const member = [...drainingMembers].find((each) => isSameRelease(each.release, release))
      if (member === undefined) return false
      drainingMembers.delete(member)
      replaceStaged(member)
      return true
    },
    shift: (share) => {
      isSelected = createSelector(share)
    },
    commit: () => {
      if (stagedMember === undefined) return
      const before = currentMember
      currentMember = stagedMember
      stagedMember = undefined
      drain(before)
    },
    revert: () => replaceStaged(undefined),
    close: async () => {
      const members = [currentMember, ...drainingMembers, ...(stagedMember ? [stagedMember] : [])]
      drainingMembers.clear()
      await Promise.all([...members.map(({ pool }) => pool.close()), ...closings])
    },
  }
}

/**
 * Returns a function that selects the staged version for exactly `share` of any hundred consecutive invocations of a
 * function, evenly distributed. Single-version functions are selected only at 100.
 */
function createSelector(share: number): (functionName: string) => boolean {
  const credits = new Map<string, number>()
  return (functionName) => {
    if (isSingleVersion(functionName)) return share === 100
    const credit = (credits.get(functionName) ?? 50) + share
    const isStaged = credit >= 100
    credits.set(functionName, isStaged ? credit - 100 : credit)
    return isStaged
  }
}
