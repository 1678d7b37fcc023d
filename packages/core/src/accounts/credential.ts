import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { platformOrganisationId } from './platform-organisation.ts'
import { countUnknownName } from '../audit/counted-entries.ts'
import { commit } from '../outbox/commit.ts'
import { nowSeconds } from '../clock.ts'
import { config } from '../config.ts'
import {
  adjustCountWrite,
  type CallCounter,
  type CallLimit,
  countAllowedCall,
  countCallWrite,
  counterOf,
  countOf,
  limitExceededError,
  perHour,
  perMinute,
  stateOf,
} from '../db/call-limit.ts'
import type { Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, getConsistent, orThrow, patch, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { recordMetric } from '../lib/metrics.ts'
import { ipNetworkOf, signInNetworkOf } from '../lib/ip-network.ts'
import { reportRateLimit } from '../lib/rate-limit-state.ts'
import { log } from '../log.ts'
import { type Device, deviceKeyOf, parseDevice } from './device.ts'
import { passwordMatches } from './password.ts'

/** Usernames are unique on the platform, not only within an organisation. */
export const Credential = z.object({
  userId: z.string(),
  organisationId: z.string(),
  /** Absent for users of identity providers. */
  passwordHash: z.string().optional(),
  /**
   * A copy of the user's session epoch. A new session copies it, so that a session that is opened with an old password
   * during a password change is invalid from the start.
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

/** A counter with the counts of its periods when the attempt began. */
interface CountedLimit {
  counter: CallCounter
  counts: readonly number[]
}

export interface Attempt {
  username: string
  /** The hash of the username. */
  subject: string
  address: string
  /** False if a signed-in user enters the password again. */
  isSignIn: boolean
  failureLimits: readonly CountedLimit[]
  signInLimit: CountedLimit
  credential: Credential | undefined
  /** Undefined if the attempt is not from a browser. */
  device: { known: Device | undefined } | undefined
}

/**
 * The origin of a sign-in, or of a signed-in user who enters the password again. In the latter case, `sessionId` is
 * set, and failed sign-ins of other people do not limit the user's attempts.
 */
export interface PasswordProof extends Origin {
  sessionId?: string
}

/** Users may type a password as the name, so only a hash of the name is stored. */
const subjectOf = (username: string): string => sha256(keys.foldUsername(username))

const strangerLimits = (user: string, address: string): CallLimit[] => [
  perMinute(`failed-sign-ins:${user}:${signInNetworkOf(address)}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE),
  perMinute(`failed-sign-ins:${ipNetworkOf(address)}`, config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE),
  perHour(`failed-sign-ins:${user}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_HOUR),
]

/** Limits for one device or session of the user. They are separate, so that strangers cannot use them up. */
const ownLimits = (user: string, id: string): CallLimit[] => [
  perMinute(`failed-sign-ins:${user}:${id}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE),
  perHour(`failed-sign-ins:${user}:${id}`, config.PLAT_LIMIT_SIGN_IN_USER_PER_HOUR),
]

/**
 * Limits for all devices on which a directory user has signed in with this name. The devices share the limits, because
 * several directories may contain the name.
 */
const knownNameLimits = (user: string): CallLimit[] => ownLimits(user, 'known-name')

const successLimit = (user: string): CallLimit => perMinute(`sign-ins:${user}`, config.PLAT_LIMIT_SIGN_INS_PER_MINUTE)

export async function beginAttempt(username: string, origin: PasswordProof): Promise<Attempt> {
  const { address, device: token, sessionId } = origin
  const subject = subjectOf(username)
  const deviceKey = deviceKeyOf(token)
  const ownId = sessionId ?? deviceKey?.pk
  const groups = [
    strangerLimits(subject, address),
    ownId === undefined ? [] : ownLimits(subject, ownId),
    deviceKey === undefined ? [] : knownNameLimits(subject),
    [successLimit(subject)],
  ].map((limits) => limits.map(counterOf))
  const [item, ...others] = await getConsistent([
    keys.username(username),
    ...(deviceKey ? [deviceKey] : []),
    ...groups.flat().flatMap((counter) => counter.countKeys),
  ])
  const knownDevice = deviceKey && parseDevice(token ?? '', others.shift())
  const credential = item && Credential.parse(item)
  const isSignIn = sessionId === undefined
  const [strangerCounts = [], ownCounts = [], knownNameCounts = [], [signInLimit] = []] = groups.map((counters) =>
    counters.map((counter) => ({ counter, counts: others.splice(0, counter.countKeys.length).map(countOf) })),
  )
  const isOwnUser = !isSignIn || (credential !== undefined && knownDevice?.users.has(credential.userId) === true)
  // The name of a directory user on the platform may differ from the name that was typed.
  const isOwnName = credential?.passwordHash === undefined && knownDevice?.users.has(subject) === true
  const failureLimits = isOwnUser ? ownCounts : isOwnName ? knownNameCounts : strangerCounts
  if (signInLimit === undefined) throw new TypeError('Sign-ins must be limited.')
  enforceLimits([...failureLimits, signInLimit])
  return {
    username,
    subject,
    address,
    isSignIn,
    failureLimits,
    signInLimit,
    credential,
    device: token === undefined ? undefined : { known: knownDevice },
  }
}

/** Counts the attempt as a failure before the comparison, so that concurrent guesses cannot exceed the limits. */
async function reserve({ failureLimits }: Attempt): Promise<void> {
  const writes = failureLimits.map(({ counter, counts }) => countCallWrite(counter, counts.slice(1)))
  const failure = await transact(writes)
  const exceededLimit = failure && failureLimits[failure.index]
  if (exceededLimit)
    throw limitExceededError(exceededLimit.counter, [countOf(failure.item), ...exceededLimit.counts.slice(1)])
  reportTightest(failureLimits.map(withOneMore))
}

/**
 * For the transaction that follows a correct password: removes the counted failure, and counts a sign-in unless the
 * user was already signed in.
 */
export function acceptedWrites({ failureLimits, signInLimit, isSignIn }: Attempt): WriteItem[] {
  reportTightest([...failureLimits, withOneMore(signInLimit)])
  return [
    ...failureLimits.map(({ counter }) => adjustCountWrite(counter, -1)),
    ...(isSignIn ? [orThrow(countCallWrite(signInLimit.counter), 'rate_limited')] : []),
  ]
}

/**
 * Handles an error after a correct password: counts a sign-in instead of a failure, so that retries stay limited, and
 * throws the error. If only the response to the transaction was lost, the failure is removed twice, so one more guess
 * is possible.
 */
export async function failAccepted({ failureLimits, signInLimit, isSignIn }: Attempt, error: unknown): Promise<never> {
  try {
    await transact([
      ...failureLimits.map(({ counter }) => adjustCountWrite(counter, -1)),
      ...(isSignIn ? [adjustCountWrite(signInLimit.counter, 1)] : []),
    ])
  } catch (cause) {
    log('error', 'A correct password stays counted as a failed sign-in', { cause })
  }
  throw error
}

/** Throws `rate_limited` if the user has signed in too often in this minute. */
export const countSignIn = (username: string): Promise<void> => countAllowedCall(successLimit(subjectOf(username)))

export async function rejectAttempt(attempt: Attempt): Promise<never> {
  recordMetric('SignInFailures')
  await recordFailure(attempt)
  throw platformError('invalid_credentials')
}

/** Without a hash, returns false after about the same time, so that timing does not reveal whether the user exists. */
export const countAndCompare = (attempt: Attempt, password: string, passwordHash?: string): Promise<boolean> =>
  // The queue key is the subject of the last failure limit, so that guesses of strangers do not delay known devices.
  passwordMatches(password, passwordHash, attempt.failureLimits.at(-1)?.counter.subject ?? '', () => reserve(attempt))

export async function comparePassword(attempt: Attempt, password: string): Promise<Credential> {
  const { credential } = attempt
  const isCorrect = await countAndCompare(attempt, password, credential?.passwordHash)
  return credential !== undefined && isCorrect ? credential : rejectAttempt(attempt)
}

const remainingOf = ({ counter, counts }: CountedLimit): number => stateOf(counter, counts).remaining

const withOneMore = ({ counter, counts: [count = 0, ...earlierCounts] }: CountedLimit): CountedLimit => ({
  counter,
  counts: [count + 1, ...earlierCounts],
})

function enforceLimits(limits: readonly CountedLimit[]): void {
  const exceededLimit = limits.find((limit) => remainingOf(limit) === 0)
  if (exceededLimit !== undefined) throw limitExceededError(exceededLimit.counter, exceededLimit.counts)
  reportTightest(limits)
}

function reportTightest(limits: readonly CountedLimit[]): void {
  const [tightestLimit] = limits.toSorted((one, other) => remainingOf(one) - remainingOf(other))
  if (tightestLimit !== undefined) reportRateLimit(stateOf(tightestLimit.counter, tightestLimit.counts))
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
