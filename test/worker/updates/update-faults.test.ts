import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { type UpdatePlan } from '@platform/core/updates/record'
import { TargetError } from '@platform/worker/updates/target/port'
import { atStoreCalls } from '../../core/support/store-hook.ts'
import { isLong, stride } from '../../support/long.ts'
import { started } from '../../support/world.ts'
import { MemoryTarget, type TargetCall } from './support/memory-target.ts'
import {
  accept,
  type Accepted,
  clockBack,
  expectWhole,
  fails,
  jobOf,
  leaseEnds,
  passingTime,
  work,
  workOff,
} from './support/updating.ts'

const { released, close } = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(close)
afterEach(clockBack)
await started()

/** An update before its worker has begun, and how it may end where no worker is cut off. */
interface Case {
  accepted: Accepted
  target: MemoryTarget
  status: 'Completed' | 'Failed'
}

const [older, newer, bad] = [await released('1.0.0'), await released('1.1.0'), await released('1.2.0')]

const caseOf = async (plan: UpdatePlan, status: Case['status'], more: MemoryTarget['hook'] = {}): Promise<Case> => {
  const target = new MemoryTarget(plan.before)
  target.hook = { before: passingTime, ...more }
  return { accepted: await accept(plan), target, status }
}

/** Real requests fail once the release has them all, at the time of the clock that `fail` counts by. */
const failing =
  (fail: typeof fails) =>
  async ({ name, input }: TargetCall) => {
    if (name === 'shift' && input[1] === 100) await fail(bad.version, 50)
  }

const cases = {
  'an update': () => caseOf({ action: 'apply', release: newer, before: older }, 'Completed'),
  'an update that fails at real requests': () =>
    caseOf({ action: 'apply', release: bad, before: older }, 'Failed', { after: failing(fails) }),
  'a way back': () => caseOf({ action: 'rollback', release: older, before: newer }, 'Completed'),
} satisfies Record<string, () => Promise<Case>>

const names = Object.keys(cases) as (keyof typeof cases)[]

/** What a worker does that others could see: to the store, and to its target. */
const isCounted = ({ name }: TargetCall): boolean => name !== 'invoke' && name !== 'unanswered'

const gone = (): Error => new Error('The connection has ended.')

/**
 * A worker that is killed at its n-th call: before that has an effect, or before it hears of it. Answers whether it came so
 * far.
 */
async function killed({ accepted, target }: Case, n: number, when: 'before' | 'after'): Promise<boolean> {
  const { before, after } = target.hook
  let calls = 0
  const enter = () => {
    if (calls >= n) throw gone()
    if (++calls >= n && when === 'before') throw gone()
  }
  const leave = () => {
    if (calls >= n) throw gone()
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
  using _ = atStoreCalls({ before: async () => enter(), after: async () => leave() })
  await work(accepted, target.port).catch(() => undefined)
  target.hook = { ...(before && { before }), ...(after && { after }) }
  return calls >= n
}

const kills = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(kills.filter((_, index) => isLong || index % 3 === 0))(
  '%s whose worker is killed at any call, %s it has its effect, ends as exactly one of two releases',
  async (name, when) => {
    let [wasKilled, tried] = [true, 0]
    for (let n = 1; wasKilled; n += stride) {
      const each = await cases[name]()
      wasKilled = await killed(each, n, when)
      await work(each.accepted, each.target.port)
      leaseEnds()
      await work(each.accepted, each.target.port)
      leaseEnds()
      await work(each.accepted, each.target.port)
      expect(await expectWhole(each.accepted, each.target)).toBe(each.status)
      tried = n
    }
    expect(tried).toBeGreaterThan(15)
  },
  300_000,
)

test.each(names)(
  '%s one of whose calls has its effect and no answer ends as exactly one of two releases',
  async (name) => {
    let wasLost = true
    for (let n = 1; wasLost; n += stride) {
      const each = await cases[name]()
      let calls = 0
      const { after } = each.target.hook
      each.target.hook.after = async (call) => {
        await after?.(call)
        if (isCounted(call) && ++calls === n) throw new TargetError('No answer came.')
      }
      await workOff(each.accepted, each.target.port)
      expect(await expectWhole(each.accepted, each.target)).toBe(each.status)
      wasLost = calls >= n
    }
  },
  120_000,
)

test.each(names)('%s is done once where many workers hear of it at the same time, and again later', async (name) => {
  const each = await cases[name]()
  await Promise.all([1, 2, 3, 4].map(() => work(each.accepted, each.target.port)))
  await work(each.accepted, each.target.port)
  expect(await expectWhole(each.accepted, each.target)).toBe(each.status)
})

test.each(names)('%s whose worker is slower than its claim is done once by the next one', async (name) => {
  const each = await cases[name]()
  const slow = work(each.accepted, each.target.port)
  leaseEnds()
  await Promise.all([slow, work(each.accepted, each.target.port)])
  leaseEnds()
  await work(each.accepted, each.target.port)
  expect(await expectWhole(each.accepted, each.target)).toBe(each.status)
})

test('a worker that has lost its update undoes nothing', async () => {
  const each = await cases['an update']()
  let hasBegun = false
  each.target.hook.before = async (call) => {
    await passingTime(call)
    if (call.name !== 'shift' || hasBegun) return
    hasBegun = true
    leaseEnds()
    await work(each.accepted, each.target.port)
    expect(await expectWhole(each.accepted, each.target)).toBe('Completed')
  }
  await work(each.accepted, each.target.port)
  expect(hasBegun).toBe(true)
  expect(await expectWhole(each.accepted, each.target)).toBe('Completed')
})

const failpoints = {
  'an update': ['staged', 'smoked', 'shifted-10', 'shifted-50', 'shifted-100', 'committed'],
  'an update that fails at real requests': ['shifted-100', 'reverted'],
  'a way back': ['staged', 'smoked', 'shifted-100', 'committed'],
} as const

test.each(names.flatMap((name) => failpoints[name].map((failpoint) => [name, failpoint] as const)))(
  '%s that breaks off at %s is ended by the next try',
  async (name, failpoint) => {
    const each = await cases[name]()
    vi.stubEnv('PLAT_FAILPOINT', `update.${failpoint}=throw`)
    vi.resetModules()
    // A worker of its own, as armed as a process would be.
    const there = await import('./support/updating.ts')
    vi.unstubAllEnvs()
    const own = { ...each.target.hook }
    // All that happens meanwhile happens at its time: its minute may be another than the one here.
    each.target.hook = { before: there.passingTime, ...(own.after && { after: failing(there.fails) }) }
    await there.work(each.accepted, each.target.port).catch(() => undefined)
    each.target.hook = own
    expect((await jobOf(each.accepted)).status).toBe('Running')
    // Its clock is ahead of this one.
    leaseEnds()
    leaseEnds()
    await work(each.accepted, each.target.port)
    expect(await expectWhole(each.accepted, each.target)).toBe(each.status)
  },
)
