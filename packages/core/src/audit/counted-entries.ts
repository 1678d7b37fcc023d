import { type Caller, system } from '../caller.ts'
import { type PlatformError } from '../error.ts'
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

interface Counted {
  group: string
  count: number
  write: Write
}

const counted = new Map<string, Counted>()

/** Returns whether the call is the first of its minute. Beyond the limits, it is not counted. */
function track(group: string, subject: string, write: Write, firstCount: 0 | 1): boolean {
  const current = counted.get(subject)
  if (current === undefined) {
    const ofGroup = [...counted.values()].filter((each) => each.group === group)
    if (counted.size >= maxSubjects || ofGroup.length >= maxSubjectsOfGroup) return false
    counted.set(subject, { group, count: firstCount, write })
    setTimeout(() => void finishWindow(subject), windowMs).unref()
    return true
  }
  Object.assign(current, { count: current.count + 1, write })
  return false
}

async function finishWindow(subject: string): Promise<void> {
  const { count: rest = 0, write } = counted.get(subject) ?? {}
  counted.delete(subject)
  if (rest > 0 && write !== undefined) await tryWrite(write, rest)
}

/** An unavailable store does not change the response. */
const tryWrite = (write: Write, times: number): Promise<unknown> =>
  write(times).catch((error: unknown) => log('warn', 'Failed to record a rejected request', { cause: error }))

/** Writes the counted entries now. */
export const flushCounted = async (): Promise<void> => {
  await Promise.all([...counted.keys()].map(finishWindow))
}

const times = (number: number): string => (number === 1 ? '1 call' : `${number} calls`)

/** Records a call that was rejected with status 403. */
export async function recordDenied(
  caller: Caller,
  operation: string,
  { code, extra: { requiredPermission } }: Pick<PlatformError, 'code' | 'extra'>,
): Promise<void> {
  // The entry must not depend on the rights that the caller lacks, and is not the response of an idempotent request.
  const { rights: _, idempotency: __, ...actor } = caller
  const write = (number: number) => {
    const requirement = requiredPermission === undefined ? 'requires a session' : `requires ${requiredPermission}`
    const detail = `${code === 'forbidden' ? requirement : code}; ${times(number)}`
    return commit(actor, { writes: [], audit: { action: 'access.denied', resource: operation, detail } })
  }
  const { organisationId, userId, tokenId } = caller
  if (track(organisationId, `${organisationId} ${userId} ${tokenId}`, write, 0)) await tryWrite(write, 1)
}

/**
 * Counts a sign-in with an unknown name. The name is not recorded, because users may type a password as the name.
 * Nothing is written during the request, because its calls and time must not reveal which names exist.
 */
export function countUnknownName(address: string, findOrganisation: () => Promise<string | undefined>): void {
  const write = async (number: number) => {
    const organisationId = await findOrganisation()
    if (organisationId === undefined) return
    const detail = `Unknown user name; ${times(number)}`
    await commit(system(organisationId, address), {
      writes: [],
      audit: { action: 'session.refuse', resource: 'unknown', detail },
    })
  }
  track('', 'unknown names', write, 1)
}
