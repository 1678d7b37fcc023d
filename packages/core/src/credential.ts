import { type Credentials } from '@platform/contract/auth'
import * as z from 'zod'
import { type Origin, system } from './caller.ts'
import { commit } from './change.ts'
import { now, nowSeconds } from './clock.ts'
import { config } from './config.ts'
import { type Condition } from './db/expression.ts'
import * as keys from './db/keys.ts'
import { create, getAll, type Item, patch, type Step, transact, update } from './db/table.ts'
import { fault } from './fault.ts'
import { newId } from './id.ts'
import { networkOf } from './network.ts'
import { passwordFits } from './password.ts'

/** How a user signs in by name: stored under the name, which is unique on the platform. */
const Credential = z.object({
  userId: z.string(),
  organisationId: z.string(),
  passwordHash: z.string(),
  /** As in the user's row: a session takes it from here, so that an old password opens only what has ended already. */
  epoch: z.number().default(0),
})
export type Credential = z.infer<typeof Credential>

interface Owner {
  id: string
  organisationId: string
  username: string
}

/** The step that gives a user its name and password; refused where the name is taken. */
export const createCredential = ({ id, organisationId, username }: Owner, passwordHash: string): Step =>
  create(keys.username(username), { userId: id, organisationId, passwordHash })

/** The step that begins another epoch of a user's sessions, with another password where one is given. */
export const renewCredential = ({ id, username }: Owner, passwordHash?: string, condition: Condition = {}): Step =>
  patch(keys.username(username), { set: { passwordHash }, add: { epoch: 1 } }, { userId: { is: id }, ...condition })

/**
 * Who a name and a password belong to, and the user's item, read after the password was compared. Throws
 * `invalid_credentials`, or `rate_limited` after too many failures in one minute (D34). Two calls; a failure makes four.
 */
export async function checkPassword(
  { username, password }: Credentials,
  { address }: Origin,
): Promise<Credential & { user: Item | undefined }> {
  const minute = Math.floor(now() / 60_000)
  const places = [`user:${username}`, `address:${networkOf(address)}`]
  const tally = places.map((place) => keys.failedSignIns(place, minute))
  const [item, ...failures] = await getAll([keys.username(username), ...tally])
  refuseMany(failures)
  const credential = item && Credential.parse(item)
  const isRight = await passwordFits(password, credential?.passwordHash, keys.username(username).pk)
  if (credential !== undefined && isRight) {
    // Of guesses at the same moment the right one hears it only while the others are few.
    const [user, ...meanwhile] = await getAll([keys.user(credential.organisationId, credential.userId), ...tally])
    refuseMany(meanwhile)
    return { ...credential, user }
  }
  // Counted before it is told: of all guesses, no more than the limit learn that they were wrong.
  const change = { add: { count: 1 }, set: { ttl: (minute + 10) * 60 } }
  refuseMany(await Promise.all(tally.map((key) => update(key, change))), 1)
  await noteFailure(username, credential, address)
  throw fault('invalid_credentials')
}

/** Refuses where the name or the address has as many failures as it may, `own` of them not counted. */
function refuseMany(failures: readonly (Item | undefined)[], own = 0): void {
  const limits = [config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE]
  const counts = failures.map((failure) => Number(failure?.['count'] ?? 0) - own)
  if (!counts.some((count, index) => count >= (limits[index] ?? 0))) return
  throw fault('rate_limited', { retryAfterSeconds: 60 - Math.floor((now() / 1000) % 60) })
}

/** On record with the user that was named. A name that nobody has costs the same: one write, and no message. */
async function noteFailure(username: string, credential: Credential | undefined, address: string): Promise<void> {
  if (credential === undefined) {
    await transact([create(keys.decoy(newId('evt')), { ttl: nowSeconds() + 600 })])
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
