import { type Caller, system } from '../caller.ts'
import type { PlatformError } from '../error.ts'
import { log } from '../log.ts'
import { commit } from '../outbox/commit.ts'

/**
 * Writes audit entries about rejected requests, which a caller can repeat at will. Each process therefore combines the
 * repeated requests of a minute into one entry for each subject.
 */

const windowMs = 60_000
const maxSubjects = 1000
/** One organisation must not use up the subjects of the others. */
const maxSubjectsOfGroup = 50

type Write = (count: number) => Promise<unknown>

interface CountWindow {
  group: string
  count: number
  write: Write
}

const windows = new Map<string, CountWindow>()

/** Returns whether the call is the first of its subject in this minute. Beyond the limits, does not count the call. */
function track(group: string, subject: string, write: Write, firstCount: 0 | 1): boolean {
  const currentWindow = windows.get(subject)
  if (currentWindow === undefined) {
    const windowsOfGroup = [...windows.values()].filter((window) => window.group === group)
    if (windows.size >= maxSubjects || windowsOfGroup.length >= maxSubjectsOfGroup) return false
    windows.set(subject, { group, count: firstCount, write })
    setTimeout(() => void finishWindow(subject), windowMs).unref()
    return true
  }
  Object.assign(currentWindow, { count: currentWindow.count + 1, write })
  return false
}

async function finishWindow(subject: string): Promise<void> {
  const { count = 0, write } = windows.get(subject) ?? {}
  windows.delete(subject)
  if (count > 0 && write !== undefined) await tryWrite(write, count)
}

/** Only logs an error, so that an unavailable store does not change the response. */
const tryWrite = (write: Write, count: number): Promise<unknown> =>
  write(count).catch((error: unknown) => log('warn', 'Failed to record a rejected request', { cause: error }))

/** For tests: ends all windows, and writes their entries. */
export const flushCounted = async (): Promise<void> => {
  await Promise.all([...windows.keys()].map(finishWindow))
}

const callsText = (count: number): string => (count === 1 ? '1 call' : `${count} calls`)

export async function recordDenied(
  caller: Caller,
  operation: string,
  { code, extra: { requiredPermission } }: Pick<PlatformError, 'code' | 'extra'>,
): Promise<void> {
  // `commit` must neither check the rights of the caller nor store a response for the idempotency key.
  const { rights: _, idempotency: __, ...actor } = caller
  const write = (count: number) => {
    const requirement = requiredPermission === undefined ? 'requires a session' : `requires ${requiredPermission}`
    const detail = `${code === 'forbidden' ? requirement : code}; ${callsText(count)}`
    return commit(actor, { writes: [], audit: { action: 'access.denied', resource: operation, detail } })
  }
  const { organisationId, userId, tokenId } = caller
  if (track(organisationId, `${organisationId} ${userId} ${tokenId}`, write, 0)) await tryWrite(write, 1)
}

/**
 * Counts a sign-in with an unknown name. The name is not recorded, because users may type a password as the name. The
 * entry is written at the end of the minute, so that the response time does not reveal which names exist.
 */
export function countUnknownName(address: string, findOrganisation: () => Promise<string | undefined>): void {
  const write = async (count: number) => {
    const organisationId = await findOrganisation()
    if (organisationId === undefined) return
    const detail = `Unknown user name; ${callsText(count)}`
    await commit(system(organisationId, address), {
      writes: [],
      audit: { action: 'session.refuse', resource: 'unknown', detail },
    })
  }
  track('', 'unknown names', write, 1)
}
