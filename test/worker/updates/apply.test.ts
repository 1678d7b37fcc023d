import { describe, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { type InstalledRelease, isSameRelease, type UpdatePlan } from '@platform/core/updates/record'
import { targetFailure } from '@platform/worker/updates/target/lambda-functions'
import { TargetError } from '@platform/worker/updates/target/port'
import { MemoryTarget, good, type TargetCall } from './support/memory-target.ts'
import {
  advanceOnHealthCheck,
  attempt,
  attemptRepeatedly,
  countErrors,
  endEventsOf,
  expectAttempt,
  expectEnd,
  expireLease,
  jobOf,
  queueUpdate,
  readUpdateState,
  setUpUpdates,
  type QueuedUpdate,
} from './support/updating.ts'
import { runOperation } from '@platform/core/operations/run'
import { updateHandlers } from '@platform/worker/updates/handlers'
import { platformFunctions } from './support/feed.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { sampled, stride } from '../../support/long.ts'
import { PlatformError, platformError } from '@platform/core/error'
import { RegistryError } from '@platform/oci/error'
import { classifyUpdateError, describeError, UpdateError } from '@platform/worker/updates/errors'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { released, newReleases, newUpdate } = await setUpUpdates(feed)

const unavailable = () => new TargetError('Unavailable.')
const finalError = (message: string) => new TargetError(message, { isFinal: true })
const keyOf = ({ version, digest }: InstalledRelease) => `${version} ${digest}`
const digestOf = (digit: string) => `sha256:${digit.repeat(64)}`

function recordShifts(target: MemoryTarget): unknown[] {
  const shifts: unknown[] = []
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift') shifts.push(input[2])
  }
  return shifts
}

test('identifies a release by version and digest, not by repository', () => {
  const release = { version: '1.2.0', digest: digestOf('1'), repository: 'one.example.com/releases' }
  expect(isSameRelease(release, { ...release, repository: 'two.example.com/releases' })).toBe(true)
  expect(isSameRelease({ version: '1.2.0' }, { version: '1.2.0' })).toBe(true)
  for (const other of [{ ...release, version: '1.2.1' }, { ...release, digest: digestOf('2') }, { version: '1.2.0' }]) {
    expect(isSameRelease(release, other)).toBe(false)
  }
})

test('shifts 10, 50 and 100 percent, then commits, and reports each step', async () => {
  const { target, update, newer, older } = await newUpdate()
  const shifts = recordShifts(target)
  expect(await expectAttempt(update, target, 'Completed')).toBe(`Version ${newer.version} serves.`)
  expect(shifts).toEqual([false, false, false])
  expect(target.shifts).toEqual([10, 50, 100].map((share) => `${newer.version} ${share}`))
  expect([...target.staged.keys()].toSorted()).toEqual([older, newer].map(keyOf).toSorted())
  expect((await jobOf(update)).steps?.map(({ name, status }) => [name, status])).toEqual(
    ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit'].map((name) => [name, 'Completed']),
  )
})

test('rolls back in one shift, and keeps the release that it replaces', async () => {
  const { target, update, older, newer } = await newUpdate(undefined, 'rollback')
  const shifts = recordShifts(target)
  await expectAttempt(update, target, 'Completed')
  expect(target.shifts).toEqual([`${older.version} 100`])
  expect(shifts).toEqual([true])
  expect(target.staged.has(keyOf(newer))).toBe(true)
})

test('rolls back a release that fails at real requests only', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await countErrors(newer.version, 4)
  }
  await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([`${newer.version} 10`])
  const oldVersionText = `version ${older.version} 0 times in the same time`
  const [{ data }] = (await endEventsOf(update)).filter(({ name }) => name === 'update.failed') as any
  expect(data).toMatchObject({ action: 'apply', version: newer.version, previousVersion: older.version })
  expect(data.message.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 4 times in a while at 10 %, ${oldVersionText}. Version ${older.version} serves.`,
  )
})

test('needs no registry for a rollback to a release that is still staged', async () => {
  const { newer } = await newReleases()
  const release = { ...newer, version: '0.1.0', digest: digestOf('2') }
  const target = new MemoryTarget(release)
  target.hook = { before: advanceOnHealthCheck }
  target.staged.set(keyOf(newer), new Map())
  target.serving = newer
  await expectAttempt(await queueUpdate({ action: 'rollback', release, before: newer }), target, 'Completed')
})

test('records a release that serves already, even if it can no longer be fetched', async () => {
  const { older } = await newReleases()
  const release = { ...older, version: '4.0.0', digest: digestOf('1') }
  const target = new MemoryTarget(older)
  target.staged.set(keyOf(release), new Map())
  await target.port.commit(release, older)
  const update = await queueUpdate({ action: 'apply', release, before: older })
  await expectAttempt(update, target, 'Completed')
  expect((await jobOf(update)).steps?.at(-1)).toMatchObject({ name: 'commit', status: 'Completed' })
})

test('reverts the previous attempt before it stages again', async () => {
  const { target, update } = await newUpdate()
  const calls: string[] = []
  target.hook.before = async (call) => {
    await advanceOnHealthCheck(call)
    if (['stage', 'revert'].includes(call.name)) calls.push(call.name)
    if (call.name === 'stage' && calls.length === 1) throw unavailable()
  }
  await attempt(update, target.port)
  expect(calls).toEqual(['stage'])
  expireLease()
  await expectAttempt(update, target, 'Completed')
  expect(calls).toEqual(['stage', 'revert', 'stage'])
})

test('removes traffic from the release if the target becomes unavailable, and retries later', async () => {
  const { target, update, newer } = await newUpdate()
  let isAway = false
  target.hook.before = async (call) => {
    await advanceOnHealthCheck(call)
    if (call.name === 'invoke' && target.share?.share === 50) isAway = true
    if (isAway && call.name !== 'shift') throw unavailable()
  }
  await attempt(update, target.port)
  expect((await jobOf(update)).status).toBe('Running')
  expect([target.serving.version === newer.version, target.share]).toEqual([false, undefined])
  target.hook = { before: advanceOnHealthCheck }
  expireLease()
  await expectAttempt(update, target, 'Completed')
})

test('keeps running while it cannot be reverted', async () => {
  const { target, update } = await newUpdate(() => 'nonsense')
  target.hook.before = async ({ name }) => {
    if (name === 'revert') throw unavailable()
  }
  await attemptRepeatedly(update, target.port)
  expect((await jobOf(update)).status).toBe('Running')
  target.hook = {}
  await expectAttempt(update, target, 'Failed')
})

test('rolls back after too many failed attempts', async () => {
  const { target, update } = await newUpdate()
  target.hook.before = async ({ name }) => {
    if (name === 'stage') throw unavailable()
  }
  await attemptRepeatedly(update, target.port)
  expect(await expectEnd(update, target, 'Failed')).toMatch(/^Unavailable\./)
})

test('waits for the release registry and changes nothing before it is reachable', async () => {
  const { target, update, older } = await newUpdate()
  const unreachableRelease = { ...update.plan.release, repository: '127.0.0.1:9/platform/releases' }
  const plan = JSON.stringify({ ...update.plan, release: unreachableRelease })
  const key = keys.job(update.caller.organisationId, update.reference.jobId)
  const item = await get(key)
  await transact([patch(key, { set: { plan } })])
  await attempt(update, target.port)
  expect((await jobOf(update)).status).toBe('Running')
  expect([target.release, target.staged.size]).toEqual([older, 1])
  await transact([patch(key, { set: { plan: item?.['plan'] } })])
  expireLease()
  await expectAttempt(update, target, 'Completed')
})

describe('preflight', () => {
  let count = 0
  test.each([
    ['is not signed by a trusted key', { signer: 'stranger' }, /\S/],
    ['needs other infrastructure', { document: { infrastructure: '0'.repeat(64) } }, /other infrastructure/],
    ['lacks a function', { functions: { health: '', clusters: '' } }, /has other functions: queue\/batches\./],
    [
      'has an unknown function',
      { functions: { health: '', clusters: '', 'queue/batches': '', other: '' } },
      /has other functions: other\./,
    ],
  ] as const)('does not stage a release that %s', async (_, overrides, reason) => {
    const { older } = await newReleases()
    const target = new MemoryTarget(older)
    const release = await released(`2.0.${count++}`, overrides)
    const update = await queueUpdate({ action: 'apply', release, before: older })
    expect(await expectAttempt(update, target, 'Failed')).toMatch(reason)
    expect(target.staged.size).toBe(1)
  })

  test('fails for a release that the registry no longer has', async () => {
    const { older } = await newReleases()
    const release = { ...older, version: '3.0.0', digest: digestOf('0') }
    const update = await queueUpdate({ action: 'apply', release, before: older })
    await expectAttempt(update, new MemoryTarget(older), 'Failed')
  })

  test('verifies a release again even if it is staged already', async () => {
    const { older } = await newReleases()
    const target = new MemoryTarget(older)
    const release = await released('2.1.0', { signer: 'stranger' })
    target.staged.set(keyOf(release), new Map())
    await expectAttempt(await queueUpdate({ action: 'apply', release, before: older }), target, 'Failed')
    expect(target.shifts).toEqual([])
  })

  test('leaves another deployed version in place', async () => {
    const { target, update, older } = await newUpdate()
    target.serving = { version: '7.0.0' }
    await attempt(update, target.port)
    expect(target.release).toEqual({ version: '7.0.0' })
    expect(await jobOf(update)).toMatchObject({
      status: 'Failed',
      result: {
        output: `Version 7.0.0 serves instead of ${older.version}: it was deployed after the request. Version 7.0.0 serves.`,
      },
    })
  })

  test('changes nothing after the update has lost its lock', async () => {
    const { target, update, older } = await newUpdate()
    await transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])
    const calls: string[] = []
    target.hook.before = async ({ name }) => void calls.push(name)
    await attempt(update, target.port)
    const { status, result } = await jobOf(update)
    expect([status, result?.output]).toEqual(['Failed', 'Another operation changes the platform.'])
    expect(await readUpdateState()).toMatchObject({ jobId: 'job_other', current: older })
    expect([calls, target.release, target.staged.size]).toEqual([[], older, 1])
  })

  test.each([{}, { digest: digestOf('3') }, { repository: '127.0.0.1:9/platform/releases' }])(
    'fails a rollback to a release that is neither staged nor available: %j',
    async (known) => {
      const { newer } = await newReleases()
      const update = await queueUpdate({ action: 'rollback', release: { version: '0.9.0', ...known }, before: newer })
      const output = await expectAttempt(update, new MemoryTarget(newer), 'Failed')
      expect(output).toContain('was deployed, not applied')
    },
  )
})

const respondNonsense = () => 'nonsense'

function recordChanges(target: MemoryTarget): string[] {
  const changes: string[] = []
  const { before } = target.hook
  target.hook.before = async (call) => {
    await before?.(call)
    if (['stage', 'shift', 'commit', 'revert'].includes(call.name)) changes.push(call.name)
  }
  return changes
}

const deployAfterStage = (target: MemoryTarget) => {
  target.hook.after = async ({ name }) => {
    if (name === 'stage') target.serving = { version: '7.0.0' }
  }
}

test('completes an update that fails after its release serves alone', async () => {
  const { target, update, newer } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'commit') throw finalError('The previous version could not be removed.')
  }
  expect(await expectAttempt(update, target, 'Completed')).toBe(`Version ${newer.version} serves.`)
})

test('reverts as far as possible if another deployment has changed part of the target', async () => {
  const { target, update, older } = await newUpdate(respondNonsense)
  let hasFailed = false
  target.hook.after = async ({ name }) => {
    if (name === 'invoke') hasFailed = true
    if (name === 'current' && hasFailed) throw finalError('Two versions serve.')
  }
  const changes = recordChanges(target)
  await attempt(update, target.port)
  const { status, result } = await jobOf(update)
  expect([status, changes]).toEqual(['Failed', ['stage', 'revert']])
  expect(result?.output).toMatch(new RegExp(`reports no version\\. Version ${older.version} serves\\.$`))
})

test('reverts later if the target is unavailable', async () => {
  const { target, update } = await newUpdate(respondNonsense)
  let isAway = false
  target.hook.after = async ({ name }) => {
    if (name === 'invoke') isAway = true
    if (name === 'current' && isAway) throw new TargetError('Unavailable.')
  }
  await attempt(update, target.port).catch(() => undefined)
  expect((await jobOf(update)).status).toBe('Running')
  target.hook = {}
  expireLease()
  await expectAttempt(update, target, 'Failed')
})

test('reports an incomplete rollback', async () => {
  const { target, update, older } = await newUpdate(respondNonsense)
  target.hook.before = async ({ name }) => {
    if (name === 'revert') throw finalError('A function is missing.')
  }
  await attempt(update, target.port)
  const { status, result } = await jobOf(update)
  expect(status).toBe('Failed')
  expect(result?.output).toMatch(
    new RegExp(`\\. The rollback to version ${older.version} is incomplete: A function is missing\\.$`),
  )
  expect((await readUpdateState()).jobId).toBeUndefined()
})

test('keeps a version that was deployed during the update, without a share for the release', async () => {
  const { target, update, newer } = await newUpdate(good('9.9.9'))
  deployAfterStage(target)
  const changes = recordChanges(target)
  await attempt(update, target.port)
  expect(changes).toEqual(['stage', 'shift'])
  expect([target.release, target.shifts]).toEqual([{ version: '7.0.0' }, [`${newer.version} 0`]])
  expect((await jobOf(update)).result?.output).toMatch(/Version 7\.0\.0 serves\.$/)
})

test('ends even if the share of the release cannot be removed', async () => {
  const { target, update } = await newUpdate(respondNonsense)
  deployAfterStage(target)
  target.hook.before = async ({ name }) => {
    if (name === 'shift') throw new TargetError('Unavailable.')
  }
  await attempt(update, target.port)
  expect((await jobOf(update)).status).toBe('Failed')
})

test('uses one target for run and rollback', async () => {
  const { target, update } = await newUpdate(respondNonsense)
  let picks = 0
  const pick = async () => {
    picks++
    return target.port
  }
  await runOperation(update.reference, updateHandlers(pick, platformFunctions))
  await expectEnd(update, target, 'Failed')
  expect(picks).toBe(1)
})

interface Case {
  update: QueuedUpdate
  target: MemoryTarget
  status: 'Completed' | 'Failed'
}

const [olderRelease, newerRelease, badRelease] = [
  await released('1.0.0'),
  await released('1.1.0'),
  await released('1.2.0'),
]

const caseOf = async (plan: UpdatePlan, status: Case['status'], more: MemoryTarget['hook'] = {}): Promise<Case> => {
  const target = new MemoryTarget(plan.before)
  target.hook = { before: advanceOnHealthCheck, ...more }
  return { update: await queueUpdate(plan), target, status }
}

const cases = {
  'an update': () => caseOf({ action: 'apply', release: newerRelease, before: olderRelease }, 'Completed'),
  'a failing update': () =>
    caseOf({ action: 'apply', release: badRelease, before: olderRelease }, 'Failed', {
      // Real requests fail at 100 percent.
      after: async ({ name, input }) => {
        if (name === 'shift' && input[1] === 100) await countErrors(badRelease.version, 50)
      },
    }),
  'a rollback': () => caseOf({ action: 'rollback', release: olderRelease, before: newerRelease }, 'Completed'),
} satisfies Record<string, () => Promise<Case>>

const names = Object.keys(cases) as (keyof typeof cases)[]

/** Calls with an effect outside the worker. */
const isCounted = ({ name }: TargetCall): boolean => name !== 'invoke' && name !== 'unanswered'

const disconnected = (): Error => new Error('The connection has ended.')

/**
 * Kills a worker at its n-th call, before or after the effect of the call. Returns whether the worker made that many
 * calls.
 */
async function killAt({ update, target }: Case, nth: number, when: 'before' | 'after'): Promise<boolean> {
  const { before, after } = target.hook
  let calls = 0
  const enter = () => {
    if (calls >= nth || (++calls >= nth && when === 'before')) throw disconnected()
  }
  const leave = () => {
    if (calls >= nth) throw disconnected()
  }
  target.hook = {
    before: async (call) => {
      if (calls >= nth || isCounted(call)) enter()
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
  return calls >= nth
}

const kills = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(sampled(kills, 6))(
  'leaves exactly one release after the worker of %s is killed at any call, %s its effect',
  async (name, when) => {
    let [wasKilled, attemptCount] = [true, 0]
    for (let nth = 1; wasKilled; nth += stride) {
      const each = await cases[name]()
      wasKilled = await killAt(each, nth, when)
      await attempt(each.update, each.target.port)
      expireLease()
      await attempt(each.update, each.target.port)
      expireLease()
      await expectAttempt(each.update, each.target, each.status)
      attemptCount = nth
    }
    expect(attemptCount).toBeGreaterThan(15)
  },
)

test.each(names)('leaves exactly one release after any response to %s is lost', async (name) => {
  let wasLost = true
  for (let nth = 1; wasLost; nth += stride) {
    const each = await cases[name]()
    let calls = 0
    const { after } = each.target.hook
    each.target.hook.after = async (call) => {
      await after?.(call)
      if (isCounted(call) && ++calls === nth) throw new TargetError('No response.')
    }
    await attemptRepeatedly(each.update, each.target.port)
    await expectEnd(each.update, each.target, each.status)
    wasLost = calls >= nth
  }
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

const platformFailure = (code: ConstructorParameters<typeof PlatformError>[0]) => new PlatformError(code, 'Message.')
const message = 'Unexpected error; see the log.'

test.each([
  [new TargetError('Message.', { isFinal: true }), true],
  [new TargetError('Message.'), false],
  [platformFailure('version_not_available'), true],
  [platformFailure('infrastructure_update_required'), true],
  [platformFailure('release_source_unreachable'), false],
  [platformFailure('database_unavailable'), false],
  [new RegistryError('not_found', 'Message.'), true],
  [new RegistryError('unreachable', 'Message.'), false],
  [new RangeError('x'), false, message],
  ['x', false, message],
])('classifies %o as final: %s', (cause, isFinal, message = 'Message.') => {
  expect(classifyUpdateError(cause)).toEqual({ message, isFinal, cause })
})

test('classifies an update error as final, without a cause to log', () => {
  expect(classifyUpdateError(new UpdateError('Message.'))).toEqual({ message: 'Message.', isFinal: true })
})

test('classifies throttling by Lambda as transient, and other client errors as final', () => {
  const awsError = (name: string) => Object.assign(new Error('Message.'), { name, $fault: 'client' })
  expect(targetFailure(awsError('TooManyRequestsException'))).toMatchObject({ isFinal: false })
  expect(targetFailure(awsError('ValidationException'))).toMatchObject({ isFinal: true })
})

test('describes any value by its message, at most 500 characters', () => {
  expect(describeError(platformError('forbidden'))).toBe(platformError('forbidden').message)
  expect(['a text', undefined].map(describeError)).toEqual(['a text', 'undefined'])
  expect(describeError(new Error('x'.repeat(501)))).toBe('x'.repeat(500))
})
