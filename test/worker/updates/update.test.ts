import { afterAll, afterEach, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { TargetError } from '@platform/worker/updates/target/port'
import { started } from '../../support/world.ts'
import { updatesFrom } from './support/applying.ts'
import { MemoryTarget } from './support/memory-target.ts'
import {
  accept,
  clockBack,
  expectWhole,
  fails,
  jobOf,
  leaseEnds,
  passingTime,
  toldOf,
  work,
  workOff,
} from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(feed.close)
afterEach(clockBack)
await started()
const { newReleases, applying } = updatesFrom(feed)

test('a good release gets 10, 50 and 100 percent, and then serves alone; all steps are told', async () => {
  const { target, accepted, newer, older } = await applying()
  const isBack: unknown[] = []
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift') isBack.push(input[2])
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
  expect(isBack).toEqual([false, false, false])
  expect(target.shares).toEqual([10, 50, 100].map((share) => `${newer.version} ${share}`))
  expect([...target.staged.keys()].toSorted()).toEqual([older, newer].map((r) => `${r.version} ${r.digest}`).toSorted())
  const { steps, result } = await jobOf(accepted)
  expect(steps?.map(({ name, status }) => [name, status])).toEqual(
    ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit'].map((name) => [name, 'Completed']),
  )
  expect(result?.output).toBe(`Version ${newer.version} serves.`)
})

test('the way back goes to the release before at once, and has that kept which it leaves', async () => {
  const { older, newer } = await newReleases()
  const target = new MemoryTarget(newer)
  target.hook = { before: passingTime }
  const isBack: unknown[] = []
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift') isBack.push(input[2])
  }
  const accepted = await accept({ action: 'rollback', release: older, before: newer })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
  expect(target.shares).toEqual([`${older.version} 100`])
  expect(isBack).toEqual([true])
  expect(target.staged.has(`${newer.version} ${newer.digest}`)).toBe(true)
})

test('whoever asks meanwhile hears which step an update is at', async () => {
  const { target, accepted } = await applying()
  const seen = new Set<string>()
  target.hook.before = async (call) => {
    await passingTime(call)
    const { steps = [] } = await jobOf(accepted)
    seen.add(`${call.name} at ${steps.find(({ status }) => status === 'Running')?.name}`)
  }
  await work(accepted, target.port)
  const [shifts, watched] = [
    ['shift-10', 'shift-50', 'shift-100'],
    ['unanswered', 'shift', 'unanswered', 'invoke'],
  ]
  expect([...seen]).toEqual([
    'current at preflight',
    'stage at stage',
    'invoke at smoke',
    ...shifts.flatMap((step) => [...new Set(watched)].map((name) => `${name} at ${step}`)),
    'commit at commit',
  ])
})

test('a release that fails at real requests alone goes back by itself', async () => {
  const { target, accepted, newer, older } = await applying()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await fails(newer.version, 4)
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
  const beside = `version ${older.version} 0 times in the same time`
  const [{ data }] = (await toldOf(accepted)).filter(({ name }) => name === 'update.failed') as any
  expect(data).toMatchObject({ action: 'apply', version: newer.version, previousVersion: older.version })
  expect(data.message.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 4 times in a while at 10 %, ${beside}. Version ${older.version} serves.`,
  )
})

test('a release is watched for as long as the settings say', async () => {
  const { older, newer } = await newReleases()
  const target = new MemoryTarget(newer)
  let looks = 0
  target.hook.before = async ({ name, input: [, functionName, event] }) => {
    const isLook = name === 'invoke' && functionName === 'health' && !(event as any).platformProbe
    if (isLook && target.share !== undefined) looks++
  }
  await work(await accept({ action: 'rollback', release: older, before: newer }), target.port)
  // At once, and when its second is over.
  expect(looks).toBe(2)
  expect(target.whole).toEqual(older)
})

test('a release that fails more than the old one used to goes back, though that failed at times as well', async () => {
  const { target, accepted, newer, older } = await applying()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await fails(newer.version, 4)
  }
  await fails(older.version, 30)
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
})

test('a release that stops answering while it is watched goes back by itself', async () => {
  const { target, accepted, newer } = await applying()
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' && input[1] === 50) target.behaviours.set(newer.version, () => ({ statusCode: 500 }))
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([10, 50].map((share) => `${newer.version} ${share}`))
})

test('failures that both versions have are no fault of the new one', async () => {
  const { target, accepted, newer, older } = await applying()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    await fails(newer.version, Number(input[1]) / 10)
    await fails(older.version, 10 - Number(input[1]) / 10)
  }
  await fails(older.version, 3000)
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})

test('the way back needs no registry where the release is ready still', async () => {
  const { newer } = await newReleases()
  const release = { ...newer, version: '0.1.0', digest: `sha256:${'2'.repeat(64)}` }
  const target = new MemoryTarget(release)
  target.hook = { before: passingTime }
  target.staged.set(`${newer.version} ${newer.digest}`, new Map())
  target.serving = newer
  const accepted = await accept({ action: 'rollback', release, before: newer })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})

test('a release that serves already is made the one that serves in the table too, though it can no longer be read', async () => {
  const { older } = await newReleases()
  const release = { ...older, version: '4.0.0', digest: `sha256:${'1'.repeat(64)}` }
  const target = new MemoryTarget(older)
  target.staged.set(`${release.version} ${release.digest}`, new Map())
  await target.port.commit(release, older)
  const accepted = await accept({ action: 'apply', release, before: older })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
  expect((await jobOf(accepted)).steps?.at(-1)).toMatchObject({ name: 'commit', status: 'Completed' })
})

test('the next try begins with what the one before has left', async () => {
  const { target, accepted } = await applying()
  const calls: string[] = []
  target.hook.before = async (call) => {
    await passingTime(call)
    if (['stage', 'revert'].includes(call.name)) calls.push(call.name)
    if (call.name === 'stage' && calls.length === 1) throw new TargetError('Nobody answers.')
  }
  await work(accepted, target.port)
  expect(calls).toEqual(['stage'])
  leaseEnds()
  await work(accepted, target.port)
  expect(calls).toEqual(['stage', 'revert', 'stage'])
  expect(await expectWhole(accepted, target)).toBe('Completed')
})

test('an update whose target is away for a while is done later, and gets nothing meanwhile', async () => {
  const { target, accepted, newer } = await applying()
  let isAway = false
  target.hook.before = async (call) => {
    await passingTime(call)
    if (call.name === 'invoke' && target.share?.share === 50) isAway = true
    if (isAway && call.name !== 'shift') throw new TargetError('Nobody answers.')
  }
  await work(accepted, target.port)
  expect((await jobOf(accepted)).status).toBe('Running')
  expect(target.whole?.version).not.toBe(newer.version)
  expect(target.share).toBeUndefined()
  target.hook = { before: passingTime }
  leaseEnds()
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})

test('an update that cannot be undone is under way until it can', async () => {
  const { target, accepted } = await applying(() => 'nonsense')
  target.hook.before = async ({ name }) => {
    if (name === 'revert') throw new TargetError('Nobody answers.')
  }
  await workOff(accepted, target.port)
  expect((await jobOf(accepted)).status).toBe('Running')
  target.hook = {}
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
})

test('an update that is tried in vain again and again goes back', async () => {
  const { target, accepted } = await applying()
  target.hook.before = async ({ name }) => {
    if (name === 'stage') throw new TargetError('Nobody answers.')
  }
  await workOff(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect((await jobOf(accepted)).result?.output).toMatch(/^Nobody answers\./)
})

test('the registry of releases may be away: nothing is decided before it is back', async () => {
  const { target, accepted, older } = await applying()
  const unreachable = { ...accepted.plan.release, repository: '127.0.0.1:9/platform/releases' }
  const plan = JSON.stringify({ ...accepted.plan, release: unreachable })
  const key = keys.job(accepted.caller.organisationId, accepted.reference.jobId)
  const item = await get(key)
  await transact([patch(key, { set: { plan } })])
  await work(accepted, target.port)
  expect((await jobOf(accepted)).status).toBe('Running')
  expect([target.whole, target.staged.size]).toEqual([older, 1])
  await transact([patch(key, { set: { plan: item?.['plan'] } })])
  leaseEnds()
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})
