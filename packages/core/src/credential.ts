import { type Credentials } from '@platform/contract/auth'
import * as z from 'zod'
import { type Origin, system } from './caller.ts'
import { commit } from './change.ts'
import { now } from './clock.ts'
import { config } from './config.ts'
import { type Condition } from './db/expression.ts'
import * as keys from './db/keys.ts'
import { create, getAll, patch, type Step, update } from './db/table.ts'
import { fault } from './fault.ts'
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
 * Who a name and a password belong to. Throws `invalid_credentials`, or `rate_limited` after too many failures in one
 * minute (D34). One call; a failure costs three more.
 */
export async function checkPassword({ username, password }: Credentials, { address }: Origin): Promise<Credential> {
  const minute = Math.floor(now() / 60_000)
  const failures = [keys.failedSignIns(`user:${username}`, minute), keys.failedSignIns(`address:${address}`, minute)]
  const [item, byUser, byAddress] = await getAll([keys.username(username), ...failures])
  const limits = [config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE]
  const exceeded = [byUser, byAddress].some((failed, index) => Number(failed?.['count'] ?? 0) >= (limits[index] ?? 0))
  if (exceeded) throw fault('rate_limited', { retryAfterSeconds: 60 - Math.floor((now() / 1000) % 60) })

  const credential = item && Credential.parse(item)
  if ((await passwordFits(password, credential?.passwordHash)) && credential) return credential
  const change = { add: { count: 1 }, set: { ttl: (minute + 10) * 60 } }
  await Promise.all([...failures.map((key) => update(key, change)), tellFailure(username, credential, address)])
  throw fault('invalid_credentials')
}

/** A failure is on record with the user that was named, if there is one. */
async function tellFailure(username: string, credential: Credential | undefined, address: string): Promise<void> {
  if (credential === undefined) return
  const { organisationId, userId } = credential
  await commit(system(organisationId, address), {
    steps: [],
    audit: { action: 'session.refuse', resource: userId, detail: 'Wrong password' },
    events: [{ name: 'user.sign_in_failed', subject: userId, data: { userId, username } }],
  })
}
