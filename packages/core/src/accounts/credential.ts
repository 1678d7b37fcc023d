import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { platformOrganisationId } from './platform-organisation.ts'
import { countUnknownName } from '../audit/counted-entries.ts'
import { commit } from '../outbox/commit.ts'
import { nowSeconds } from '../clock.ts'
import { config } from '../config.ts'
import {
  type CallCounter,
  type CallLimit,
  countAllowedCall,
  countCall,
  counterOf,
  countOf,
  limitExceeded,
  perHour,
  perMinute,
  stateOf,
} from '../db/call-limit.ts'
import { type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, getConsistent, type Item, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { recordMetric } from '../lib/metrics.ts'
import { ipNetworkOf, signInNetworkOf } from '../lib/ip-network.ts'
import { reportRateLimit } from '../lib/rate-limit-state.ts'
import { type Device, deviceKeyOf, parseDevice } from './device.ts'
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
  /** False if a signed-in user proves the password again. */
  isSignIn: boolean
  counters: readonly CallCounter[]
  /** The counts of the counters' periods when the attempt began. */
  counts: readonly (readonly number[])[]
  credential: Credential | undefined
  /** Undefined if the attempt is not from a browser. */
  device: { known: Device | undefined } | undefined
}

/** A signed-in user who proves the password again. Failures of others do not limit the session. */
export interface PasswordProof extends Origin {
  sessionId?: string
}

/** Users may type a password as the name, so only its hash is stored. */
const subjectOf = (username: string): string => sha256(keys.foldUsername(username))

const strangerLimits = (user: string, address: string): CallLimit[] => [
  perMinute(`failed-sign-ins:${user}:${signInNetworkOf(address)}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE),
  perMinute(`failed-sign-ins:${ipNetworkOf(address)}`, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE),
  perHour(`failed-sign-ins:${user}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_HOUR),
]

/** For a device or session of the user. Separate limits keep strangers from using them up. */
const ownLimits = (user: string, id: string): CallLimit[] => [
  perMinute(`failed-sign-ins:${user}:${id}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE),
  perHour(`failed-sign-ins:${user}:${id}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_HOUR),
]

const successLimit = (user: string): CallLimit => perMinute(`sign-ins:${user}`, config.PLAT_LIMIT_SIGN_INS_PER_MINUTE)

export async function beginAttempt(username: string, origin: PasswordProof): Promise<Attempt> {
  const { address, device: token, sessionId } = origin
  const user = subjectOf(username)
  const deviceKey = deviceKeyOf(token)
  const ownId = sessionId ?? deviceKey?.pk
  const [strangers, own, successes] = [
    strangerLimits(user, address).map(counterOf),
    ownId === undefined ? [] : ownLimits(user, ownId).map(counterOf),
    counterOf(successLimit(user)),
  ]
  const itemKeys = [...strangers, ...own, successes].flatMap((counter) => counter.keys)
  const [item, ...others] = await getConsistent([
    keys.username(username),
    ...(deviceKey ? [deviceKey] : []),
    ...itemKeys,
  ])
  const known = deviceKey && parseDevice(token ?? '', others.shift())
  const credential = item && Credential.parse(item)
  const isSignIn = sessionId === undefined
  const isOwn = !isSignIn || (credential !== undefined && known?.users.has(credential.userId) === true)
  const takeCounts = (counter: CallCounter): number[] => others.splice(0, counter.keys.length).map(countOf)
  const [strangerCounts, ownCounts] = [strangers.map(takeCounts), own.map(takeCounts)]
  const [counters, counts] = isOwn ? [own, ownCounts] : [strangers, strangerCounts]
  enforceLimits([...counters, successes], [...counts, takeCounts(successes)])
  return {
    username,
    address,
    isSignIn,
    counters,
    counts,
    credential,
    device: token === undefined ? undefined : { known },
  }
}

/**
 * Checks the limits again after a correct password, because concurrent attempts may have failed since the first check.
 * Counts a sign-in.
 */
export async function acceptAttempt(
  { username, counters, isSignIn }: Attempt,
  itemKeys: readonly keys.Key[] = [],
): Promise<(Item | undefined)[]> {
  const counterKeys = counters.flatMap((counter) => counter.keys)
  const [items] = await Promise.all([
    getConsistent([...itemKeys, ...counterKeys]),
    ...(isSignIn ? [countSignIn(username)] : []),
  ])
  const counts = items.splice(itemKeys.length).map(countOf)
  enforceLimits(
    counters,
    counters.map((counter) => counts.splice(0, counter.keys.length)),
  )
  return items
}

/** Throws `rate_limited` if the user has signed in too often in this minute. */
export const countSignIn = (username: string): Promise<void> => countAllowedCall(successLimit(subjectOf(username)))

/** Counts a failure before it is reported, so that concurrent guesses cannot exceed the limit. */
async function countFailure({ counters, counts }: Attempt): Promise<void> {
  recordMetric('SignInFailures')
  const current = await Promise.all(counters.map(countCall))
  // The request's own failure is allowed.
  const others = counts.map(([, ...earlier], index) => [(current[index] ?? 0) - 1, ...earlier])
  enforceLimits(counters, others)
  reportTightest(
    counters,
    others.map(([count = 0, ...earlier]) => [count + 1, ...earlier]),
  )
}

export async function rejectAttempt(attempt: Attempt): Promise<never> {
  await countFailure(attempt)
  await recordFailure(attempt)
  throw platformError('invalid_credentials')
}

export async function comparePassword(
  attempt: Attempt,
  password: string,
): Promise<Credential & { user: Item | undefined }> {
  const { credential, counters } = attempt
  // Guesses of strangers do not delay the user's own devices.
  const isCorrect = await passwordMatches(password, credential?.passwordHash, counters.at(-1)?.subject ?? '')
  if (credential === undefined || !isCorrect) return rejectAttempt(attempt)
  const [user] = await acceptAttempt(attempt, [keys.user(credential.organisationId, credential.userId)])
  return { ...credential, user }
}

function enforceLimits(counters: readonly CallCounter[], counts: readonly (readonly number[])[]): void {
  const exceeded = counters.findIndex((counter, index) => stateOf(counter, counts[index] ?? []).remaining === 0)
  const counter = counters[exceeded]
  if (counter !== undefined) throw limitExceeded(counter, counts[exceeded])
  reportTightest(counters, counts)
}

function reportTightest(counters: readonly CallCounter[], counts: readonly (readonly number[])[]): void {
  const states = counters.map((counter, index) => stateOf(counter, counts[index] ?? []))
  const [tightest] = states.toSorted((a, b) => a.remaining - b.remaining)
  if (tightest !== undefined) reportRateLimit(tightest)
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
