import { expect, test, vi } from 'vitest'
import { type UpdatePlan } from '@platform/core/updates/record'
import { TargetError } from '@platform/worker/updates/target/port'
import { onStoreCall } from '../../support/store-calls.ts'
import { isLong, stride } from '../../support/long.ts'
import { MemoryTarget, type TargetCall } from './support/memory-target.ts'
import {
  advanceOnHealthCheck,
  attempt,
  attemptRepeatedly,
  countErrors,
  expectAttempt,
  expectEnd,
  expireLease,
  jobOf,
  queueUpdate,
  type QueuedUpdate,
  setUpUpdates,
} from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { released } = await setUpUpdates(feed)

/** A queued update, and how it ends if no worker is killed. */
interface Case {
  update: QueuedUpdate
  target: MemoryTarget
  status: 'Completed' | 'Failed'
}

const [older, newer, bad] = [await released('1.0.0'), await released('1.1.0'), await released('1.2.0')]

const caseOf = async (plan: UpdatePlan, status: Case['status'], more: MemoryTarget['hook'] = {}): Promise<Case> => {
  const target = new MemoryTarget(plan.before)
  target.hook = { before: advanceOnHealthCheck, ...more }
  return { update: await queueUpdate(plan), target, status }
}

/** Real requests fail at 100 percent; `count` uses the clock of its own module instance. */
const failing =
  (count: typeof countErrors) =>
  async ({ name, input }: TargetCall) => {
    if (name === 'shift' && input[1] === 100) await count(bad.version, 50)
  }

const cases = {
  'an update': () => caseOf({ action: 'apply', release: newer, before: older }, 'Completed'),
  'a failing update': () =>
    caseOf({ action: 'apply', release: bad, before: older }, 'Failed', { after: failing(countErrors) }),
  'a rollback': () => caseOf({ action: 'rollback', release: older, before: newer }, 'Completed'),
} satisfies Record<string, () => Promise<Case>>

const names = Object.keys(cases) as (keyof typeof cases)[]

/** Calls with an effect outside the worker. */
const isCounted = ({ name }: TargetCall): boolean => name !== 'invoke' && name !== 'unanswered'

const disconnected = (): Error => new Error('The connection has ended.')

/** Kills a worker at its n-th call, before or after the effect of the call. Returns whether it came that far. */
async function killAt({ update, target }: Case, n: number, when: 'before' | 'after'): Promise<boolean> {
  const { before, after } = target.hook
  let calls = 0
  const enter = () => {
    if (calls >= n) throw disconnected()
    if (++calls >= n && when === 'before') throw disconnected()
  }
  const leave = () => {
    if (calls >= n) throw disconnected()
  }
  target.hook = {
    before: async (call) => {
      if (calls >= n || isCounted(call)) enter()
      await before?.(call)
    },
    after: async (call) => {
      await after?.(call)
      leave()
    },
  }
  using _ = onStoreCall({ before: async () => enter(), after: async () => leave() })
  await attempt(update, target.port).catch(() => undefined)
  target.hook = { ...(before && { before }), ...(after && { after }) }
  return calls >= n
}

const kills = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(kills.filter((_, index) => isLong || index % 3 === 0))(
  'leaves exactly one release after the worker of %s is killed at any call, %s its effect',
  async (name, when) => {
    let [wasKilled, tried] = [true, 0]
    for (let n = 1; wasKilled; n += stride) {
      const each = await cases[name]()
      wasKilled = await killAt(each, n, when)
      await attempt(each.update, each.target.port)
      expireLease()
      await attempt(each.update, each.target.port)
      expireLease()
      await expectAttempt(each.update, each.target, each.status)
      tried = n
    }
    expect(tried).toBeGreaterThan(15)
  },
  300_000,
)

test.each(names)(
  'leaves exactly one release after any response to %s is lost',
  async (name) => {
    let wasLost = true
    for (let n = 1; wasLost; n += stride) {
      const each = await cases[name]()
      let calls = 0
      const { after } = each.target.hook
      each.target.hook.after = async (call) => {
        await after?.(call)
        if (isCounted(call) && ++calls === n) throw new TargetError('No response.')
      }
      await attemptRepeatedly(each.update, each.target.port)
      await expectEnd(each.update, each.target, each.status)
      wasLost = calls >= n
    }
  },
  120_000,
)

test.each(names)('runs %s once if several workers get its message, at once and later', async (name) => {
  const { update, target, status } = await cases[name]()
  await Promise.all([1, 2, 3, 4].map(() => attempt(update, target.port)))
  await expectAttempt(update, target, status)
})

test.each(names)('runs %s once if its worker outlives its lease', async (name) => {
  const { update, target, status } = await cases[name]()
  const slow = attempt(update, target.port)
  expireLease()
  await Promise.all([slow, attempt(update, target.port)])
  expireLease()
  await expectAttempt(update, target, status)
})

test('reverts nothing after a worker has lost its lease', async () => {
  const { update, target } = await cases['an update']()
  let hasBegun = false
  target.hook.before = async (call) => {
    await advanceOnHealthCheck(call)
    if (call.name !== 'shift' || hasBegun) return
    hasBegun = true
    expireLease()
    await expectAttempt(update, target, 'Completed')
  }
  await expectAttempt(update, target, 'Completed')
  expect(hasBegun).toBe(true)
})

const failpoints = {
  'an update': ['staged', 'tested', 'shifted-10', 'shifted-50', 'shifted-100', 'committed'],
  'a failing update': ['shifted-100', 'reverted'],
  'a rollback': ['staged', 'tested', 'shifted-100', 'committed'],
} as const

test.each(names.flatMap((name) => failpoints[name].map((failpoint) => [name, failpoint] as const)))(
  'resumes %s that stops at %s',
  async (name, failpoint) => {
    const { update, target, status } = await cases[name]()
    vi.stubEnv('PLAT_FAILPOINT', `update.${failpoint}=throw`)
    vi.resetModules()
    // The failpoint is read at import: this worker has modules, and a clock, of its own.
    const other = await import('./support/updating.ts')
    vi.unstubAllEnvs()
    const own = { ...target.hook }
    target.hook = { before: other.advanceOnHealthCheck, ...(own.after && { after: failing(other.countErrors) }) }
    await other.attempt(update, target.port).catch(() => undefined)
    target.hook = own
    expect((await jobOf(update)).status).toBe('Running')
    // Twice, because the other clock is ahead.
    expireLease()
    expireLease()
    await expectAttempt(update, target, status)
  },
)
