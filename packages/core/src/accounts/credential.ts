import { type Credentials } from '@platform/contract/auth'
import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now, nowSeconds } from '../clock.ts'
import { config } from '../config.ts'
import { type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, getConsistent, type Item, patch, type WriteItem, update } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { recordMetric } from '../lib/metrics.ts'
import { ipNetworkOf } from '../lib/ip-network.ts'
import { passwordFits } from './password.ts'

/** Who has a name, which is unique on the platform, and how it signs in by it. */
const Credential = z.object({
  userId: z.string(),
  organisationId: z.string(),
  /** Absent for users of identity providers: no password fits. */
  passwordHash: z.string().optional(),
  /** As in the user's row: a session takes it from here, so that an old password opens only what has ended already. */
  epoch: z.number().default(0),
})
export type Credential = z.infer<typeof Credential>

interface Owner {
  id: string
  organisationId: string
  username: string
}

/** The step that gives a user its name, with a password where it has one here; refused where the name is taken. */
export const createCredential = ({ id, organisationId, username }: Owner, passwordHash?: string): WriteItem =>
  create(keys.username(username), { userId: id, organisationId, ...(passwordHash !== undefined && { passwordHash }) })

/** The step that begins another epoch of a user's sessions, with another password where one is given. */
export const renewCredential = ({ id, username }: Owner, passwordHash?: string, condition: Condition = {}): WriteItem =>
  patch(keys.username(username), { set: { passwordHash }, add: { epoch: 1 } }, { userId: { is: id }, ...condition })

/** A try to sign in by name: from where, what it counts under, and who has the name. */
export interface Attempt {
  username: string
  address: string
  minute: number
  tally: readonly keys.Key[]
  credential: Credential | undefined
}

/** Begins an attempt; throws `rate_limited` after too many failures in one minute (D34). One call. */
export async function beginAttempt(username: string, { address }: Origin): Promise<Attempt> {
  const minute = Math.floor(now() / 60_000)
  // What was typed as a name may be a password: it is not written down.
  const places = [`user:${sha256(keys.fold(username))}`, `address:${ipNetworkOf(address)}`]
  const tally = places.map((place) => keys.failedSignIns(place, minute))
  const [item, ...failures] = await getConsistent([keys.username(username), ...tally])
  refuseMany(failures)
  return { username, address, minute, tally, credential: item && Credential.parse(item) }
}

/**
 * What an attempt that was right is told, and items that were read for it: of guesses at the same moment the right one hears
 * it only while the others are few. One call.
 */
export async function acceptAttempt(
  { tally }: Attempt,
  wanted: readonly keys.Key[] = [],
): Promise<(Item | undefined)[]> {
  const items = await getConsistent([...tally, ...wanted])
  refuseMany(items.slice(0, tally.length))
  return items.slice(tally.length)
}

/** Counts a failure before it is told: of all guesses, no more than the limit learn that they were wrong. Two calls. */
export async function countFailure({ minute, tally }: Attempt): Promise<void> {
  recordMetric('SignInFailures')
  const change = { add: { count: 1 }, set: { ttl: (minute + 10) * 60 } }
  refuseMany(await Promise.all(tally.map((key) => update(key, change))), 1)
}

/** Ends an attempt that was wrong: counts it, puts it on record, and throws `invalid_credentials`. Three calls. */
export async function rejectAttempt(attempt: Attempt): Promise<never> {
  await countFailure(attempt)
  await noteFailure(attempt)
  throw platformError('invalid_credentials')
}

/**
 * Who a name and a password belong to, and the user's item, read after the password was compared. Throws
 * `invalid_credentials`, or `rate_limited` after too many failures in one minute (D34). Two calls; a failure makes four.
 */
export const checkPassword = async (
  { username, password }: Credentials,
  origin: Origin,
): Promise<Credential & { user: Item | undefined }> => comparePassword(await beginAttempt(username, origin), password)

/** The same for an attempt that has begun. One call; a failure makes three. */
export async function comparePassword(
  attempt: Attempt,
  password: string,
): Promise<Credential & { user: Item | undefined }> {
  const { credential, username } = attempt
  const isRight = await passwordFits(password, credential?.passwordHash, keys.username(username).pk)
  if (credential === undefined || !isRight) return rejectAttempt(attempt)
  const [user] = await acceptAttempt(attempt, [keys.user(credential.organisationId, credential.userId)])
  return { ...credential, user }
}

/** Refuses where the name or the address has as many failures as it may, `own` of them not counted. */
function refuseMany(failures: readonly (Item | undefined)[], own = 0): void {
  const limits = [config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE]
  const counts = failures.map((failure) => Number(failure?.['count'] ?? 0) - own)
  if (!counts.some((count, index) => count >= (limits[index] ?? 0))) return
  throw platformError('rate_limited', { retryAfterSeconds: 60 - Math.floor((now() / 1000) % 60) })
}

/** On record with the user that was named. A name that nobody has costs the same: one write, and no message. */
async function noteFailure({ username, credential, address }: Attempt): Promise<void> {
  if (credential === undefined) {
    await transact([create(keys.dummyCredential(newId('evt')), { ttl: nowSeconds() + 600 })])
    return
  }
  const { organisationId, userId } = credential
  await commit(system(organisationId, address), {
    steps: [],
    audit: { action: 'session.refuse', resource: userId, detail: 'Wrong password' },
    events: [{ name: 'user.sign_in_failed', subject: userId, data: { userId, username } }],
    // By the organisation's next message, or the sweep.
    isAnnounced: true,
  })
}
