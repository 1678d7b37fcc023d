import { type Credentials } from '@platform/contract/auth'
import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { platformOrganisationId } from './organisation.ts'
import { countUnknownName } from '../audit/counted-entries.ts'
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
import { passwordMatches } from './password.ts'

/** Usernames are unique on the platform, not only within an organisation. */
export const Credential = z.object({
  userId: z.string(),
  organisationId: z.string(),
  /** Absent for users of identity providers. */
  passwordHash: z.string().optional(),
  /**
   * A copy of the user's session epoch. New sessions copy it, so that a session opened with an old password is already
   * ended.
   */
  epoch: z.number().default(0),
})
export type Credential = z.infer<typeof Credential>

interface Owner {
  id: string
  organisationId: string
  username: string
}

export const createCredential = (
  { id, organisationId, username }: Owner,
  passwordHash?: string,
  epoch = 0,
): WriteItem =>
  create(keys.username(username), {
    userId: id,
    organisationId,
    ...(passwordHash !== undefined && { passwordHash }),
    ...(epoch > 0 && { epoch }),
  })

export const renewCredential = ({ id, username }: Owner, passwordHash?: string, condition: Condition = {}): WriteItem =>
  patch(keys.username(username), { set: { passwordHash }, add: { epoch: 1 } }, { userId: { is: id }, ...condition })

export interface Attempt {
  username: string
  address: string
  minute: number
  failureKeys: readonly keys.Key[]
  credential: Credential | undefined
}

export async function beginAttempt(username: string, { address }: Origin): Promise<Attempt> {
  const minute = Math.floor(now() / 60_000)
  // Users may type a password as the name, so only its hash is stored.
  const subjects = [`user:${sha256(keys.foldUsername(username))}`, `address:${ipNetworkOf(address)}`]
  const failureKeys = subjects.map((subject) => keys.failedSignIns(subject, minute))
  const [item, ...failures] = await getConsistent([keys.username(username), ...failureKeys])
  enforceLimits(failures)
  return { username, address, minute, failureKeys, credential: item && Credential.parse(item) }
}

/**
 * Checks the limits again after a correct password, because concurrent attempts may have failed since the first check.
 */
export async function acceptAttempt(
  { failureKeys }: Attempt,
  itemKeys: readonly keys.Key[] = [],
): Promise<(Item | undefined)[]> {
  const items = await getConsistent([...failureKeys, ...itemKeys])
  enforceLimits(items.slice(0, failureKeys.length))
  return items.slice(failureKeys.length)
}

/** Counts a failure before it is reported, so that concurrent guesses cannot exceed the limit. */
export async function countFailure({ minute, failureKeys }: Attempt): Promise<void> {
  recordMetric('SignInFailures')
  const change = { add: { count: 1 }, set: { ttl: (minute + 10) * 60 } }
  enforceLimits(await Promise.all(failureKeys.map((key) => update(key, change))), 1)
}

export async function rejectAttempt(attempt: Attempt): Promise<never> {
  await countFailure(attempt)
  await recordFailure(attempt)
  throw platformError('invalid_credentials')
}

export const checkPassword = async (
  { username, password }: Credentials,
  origin: Origin,
): Promise<Credential & { user: Item | undefined }> => comparePassword(await beginAttempt(username, origin), password)

export async function comparePassword(
  attempt: Attempt,
  password: string,
): Promise<Credential & { user: Item | undefined }> {
  const { credential, username } = attempt
  const isCorrect = await passwordMatches(password, credential?.passwordHash, keys.username(username).pk)
  if (credential === undefined || !isCorrect) return rejectAttempt(attempt)
  const [user] = await acceptAttempt(attempt, [keys.user(credential.organisationId, credential.userId)])
  return { ...credential, user }
}

/** `ownFailures` excludes failures that the current request has counted itself. */
function enforceLimits(failures: readonly (Item | undefined)[], ownFailures = 0): void {
  const limits = [config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE]
  const counts = failures.map((failure) => Number(failure?.['count'] ?? 0) - ownFailures)
  if (!counts.some((count, index) => count >= (limits[index] ?? 0))) return
  throw platformError('rate_limited', { retryAfterSeconds: 60 - Math.floor((now() / 1000) % 60) })
}

/** An unknown name also costs one write, so that the response time does not reveal which names exist. */
async function recordFailure({ username, credential, address }: Attempt): Promise<void> {
  if (credential === undefined) {
    countUnknownName(address, platformOrganisationId)
    await transact([create(keys.dummyCredential(newId('evt')), { ttl: nowSeconds() + 600 })])
    return
  }
  const { organisationId, userId } = credential
  await commit(system(organisationId, address), {
    writes: [],
    audit: { action: 'session.refuse', resource: userId, detail: 'Wrong password' },
    events: [{ name: 'user.sign_in_failed', subject: userId, data: { userId, username } }],
    // A message is not needed: the organisation's next message or the sweep starts the projections.
    isEnqueued: true,
  })
}
