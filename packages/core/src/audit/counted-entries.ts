import { type Caller, system } from '../caller.ts'
import { log } from '../log.ts'
import { commit } from '../outbox/commit.ts'

/**
 * Entries about rejected requests, which a caller can repeat at will. Of each subject, a process writes the first one at
 * once and counts the others of the next minute in one further entry.
 */

const windowMs = 60_000
const maxSubjects = 1000

type Write = (count: number) => Promise<unknown>

interface Counted {
  count: number
  write: Write
}

const counted = new Map<string, Counted>()

/** Returns false if the entry was only counted. An unavailable store does not change the response. */
async function count(subject: string, write: Write): Promise<boolean> {
  const current = counted.get(subject)
  if (current !== undefined) {
    Object.assign(current, { count: current.count + 1, write })
    return false
  }
  if (counted.size >= maxSubjects) return false
  counted.set(subject, { count: 0, write })
  setTimeout(() => void finishWindow(subject), windowMs).unref()
  await tryWrite(write, 1)
  return true
}

async function finishWindow(subject: string): Promise<void> {
  const { count: rest = 0, write } = counted.get(subject) ?? {}
  counted.delete(subject)
  if (rest > 0 && write !== undefined) await tryWrite(write, rest)
}

const tryWrite = (write: Write, times: number): Promise<unknown> =>
  write(times).catch((error: unknown) => log('warn', 'Failed to record a rejected request', { cause: error }))

/** Writes the counted entries now. */
export const flushCounted = async (): Promise<void> => {
  await Promise.all([...counted.keys()].map(finishWindow))
}

const times = (number: number): string => (number === 1 ? '1 call' : `${number} calls`)

/** A call that was rejected with status 403. */
export async function recordDenied(caller: Caller, operation: string, permission: unknown): Promise<void> {
  // The entry must not depend on the rights that the caller lacks, and is not the response of an idempotent request.
  const { rights: _, idempotency: __, ...actor } = caller
  await count(`${caller.organisationId} ${caller.userId} ${caller.tokenId}`, (number) => {
    const requirement = typeof permission === 'string' ? `requires ${permission}` : 'requires a session'
    const detail = `${requirement}; ${times(number)}`
    return commit(actor, { writes: [], audit: { action: 'access.denied', resource: operation, detail } })
  })
}

/** A sign-in with an unknown name. The name is not recorded, because users may type a password as the name. */
export const recordUnknownName = (organisationId: string, address: string): Promise<boolean> =>
  count('unknown names', (number) =>
    commit(system(organisationId, address), {
      writes: [],
      audit: { action: 'session.refuse', resource: 'unknown', detail: `Unknown user name; ${times(number)}` },
      isEnqueued: true,
    }),
  )
