import { describe, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { type InstalledRelease, isSameRelease } from '@platform/core/updates/record'
import { TargetError } from '@platform/worker/updates/target/port'
import { MemoryTarget } from './support/memory-target.ts'
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
} from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { released, newReleases, newUpdate } = await setUpUpdates(feed)

const unavailable = () => new TargetError('Unavailable.')
const keyOf = ({ version, digest }: InstalledRelease) => `${version} ${digest}`
const digestOf = (digit: string) => `sha256:${digit.repeat(64)}`

/** Records whether each shift is marked as a rollback. */
function recordShifts(target: MemoryTarget): unknown[] {
  const isBack: unknown[] = []
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift') isBack.push(input[2])
  }
  return isBack
}

test('identifies a release by version and digest, not by repository', () => {
  const one = { version: '1.2.0', digest: digestOf('1'), repository: 'one.example.com/releases' }
  expect(isSameRelease(one, { ...one, repository: 'two.example.com/releases' })).toBe(true)
  expect(isSameRelease({ version: '1.2.0' }, { version: '1.2.0' })).toBe(true)
  for (const other of [{ ...one, version: '1.2.1' }, { ...one, digest: digestOf('2') }, { version: '1.2.0' }]) {
    expect(isSameRelease(one, other)).toBe(false)
  }
})

test('shifts 10, 50 and 100 percent, then commits, and reports each step', async () => {
  const { target, update, newer, older } = await newUpdate()
  const isBack = recordShifts(target)
  expect(await expectAttempt(update, target, 'Completed')).toBe(`Version ${newer.version} serves.`)
  expect(isBack).toEqual([false, false, false])
  expect(target.shares).toEqual([10, 50, 100].map((share) => `${newer.version} ${share}`))
  expect([...target.staged.keys()].toSorted()).toEqual([older, newer].map(keyOf).toSorted())
  expect((await jobOf(update)).steps?.map(({ name, status }) => [name, status])).toEqual(
    ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit'].map((name) => [name, 'Completed']),
  )
})

test('rolls back in one shift, and keeps the release that it replaces', async () => {
  const { target, update, older, newer } = await newUpdate(undefined, 'rollback')
  const isBack = recordShifts(target)
  await expectAttempt(update, target, 'Completed')
  expect(target.shares).toEqual([`${older.version} 100`])
  expect(isBack).toEqual([true])
  expect(target.staged.has(keyOf(newer))).toBe(true)
})

test('reports the current step while an update runs', async () => {
  const { target, update } = await newUpdate()
  const seen = new Set<string>()
  target.hook.before = async (call) => {
    await advanceOnHealthCheck(call)
    const { steps = [] } = await jobOf(update)
    seen.add(`${call.name} at ${steps.find(({ status }) => status === 'Running')?.name}`)
  }
  await attempt(update, target.port)
  const shifts = ['shift-10', 'shift-50', 'shift-100']
  expect([...seen]).toEqual([
    'current at preflight',
    'stage at stage',
    'invoke at smoke',
    ...shifts.flatMap((step) => ['unanswered', 'shift', 'invoke'].map((name) => `${name} at ${step}`)),
    'commit at commit',
  ])
})

test('rolls back a release that fails at real requests only', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await countErrors(newer.version, 4)
  }
  await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
  const beside = `version ${older.version} 0 times in the same time`
  const [{ data }] = (await endEventsOf(update)).filter(({ name }) => name === 'update.failed') as any
  expect(data).toMatchObject({ action: 'apply', version: newer.version, previousVersion: older.version })
  expect(data.message.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 4 times in a while at 10 %, ${beside}. Version ${older.version} serves.`,
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

test('takes traffic away from the release while the target is unavailable, and retries later', async () => {
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
  const unreachable = { ...update.plan.release, repository: '127.0.0.1:9/platform/releases' }
  const plan = JSON.stringify({ ...update.plan, release: unreachable })
  const key = keys.job(update.caller.organisationId, update.reference.jobId)
  const item = await get(key)
  await transact([patch(key, { set: { plan } })])
  await attempt(update, target.port)
  expect((await jobOf(update)).status).toBe('Running')
  expect([target.whole, target.staged.size]).toEqual([older, 1])
  await transact([patch(key, { set: { plan: item?.['plan'] } })])
  expireLease()
  await expectAttempt(update, target, 'Completed')
})

describe('preflight', () => {
  let count = 0
  test.each([
    ['is not signed by a trusted key', { signer: 'stranger' }, /\S/],
    ['needs other infrastructure', { document: { infrastructure: '0'.repeat(64) } }, /other infrastructure/],
    ['lacks a function', { functions: { health: '', clusters: '' } }, /has other functions: queue\/jobs\./],
    [
      'has an unknown function',
      { functions: { health: '', clusters: '', 'queue/jobs': '', other: '' } },
      /has other functions: other\./,
    ],
  ] as const)('does not stage a release that %s', async (_, wish, reason) => {
    const { older } = await newReleases()
    const target = new MemoryTarget(older)
    const release = await released(`2.0.${count++}`, wish)
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
    expect(target.shares).toEqual([])
  })

  test('leaves another deployed version in place', async () => {
    const { target, update, older } = await newUpdate()
    target.serving = { version: '7.0.0' }
    await attempt(update, target.port)
    expect(target.whole).toEqual({ version: '7.0.0' })
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
    expect([calls, target.whole, target.staged.size]).toEqual([[], older, 1])
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
