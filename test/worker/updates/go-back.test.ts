import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { TargetError } from '@platform/worker/updates/target/port'
import { started } from '../../support/world.ts'
import { updatesFrom } from './support/applying.ts'
import { good, type MemoryTarget } from './support/memory-target.ts'
import { clockBack, expectWhole, jobOf, leaseEnds, passingTime, stateNow, work } from './support/updating.ts'

/** How an update ends that cannot be done, when its target is not as it was left. */

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(feed.close)
afterEach(clockBack)
await started()
const { applying } = updatesFrom(feed)

const unfit = () => 'nonsense'
const final = (message: string): TargetError => new TargetError(message, { isFinal: true })

/** All that changes the target from now on. */
function changesOf(target: MemoryTarget): string[] {
  const changes: string[] = []
  const { before } = target.hook
  target.hook.before = async (call) => {
    await before?.(call)
    if (['stage', 'shift', 'commit', 'revert'].includes(call.name)) changes.push(call.name)
  }
  return changes
}

test('an update that fails although its release serves alone is done', async () => {
  const { target, accepted, newer } = await applying()
  target.hook.after = async ({ name }) => {
    if (name === 'commit') throw final('What served before could not be removed.')
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
  expect((await jobOf(accepted)).result?.output).toBe(`Version ${newer.version} serves.`)
})

test('an update whose target others have changed in part is undone as well as it can be', async () => {
  const { target, accepted, older } = await applying(unfit)
  let hasFailed = false
  target.hook.after = async ({ name }) => {
    if (name === 'invoke') hasFailed = true
    if (name === 'current' && hasFailed) throw final('Two versions serve.')
  }
  const changes = changesOf(target)
  await work(accepted, target.port)
  const { status, result } = await jobOf(accepted)
  expect([status, changes]).toEqual(['Failed', ['stage', 'revert']])
  expect(result?.output).toMatch(new RegExp(`does not say its version\\. Version ${older.version} serves\\.$`))
})

test('an update whose target cannot be asked just now is undone later', async () => {
  const { target, accepted } = await applying(unfit)
  let isAway = false
  target.hook.after = async ({ name }) => {
    if (name === 'invoke') isAway = true
    if (name === 'current' && isAway) throw new TargetError('Nobody answers.')
  }
  await work(accepted, target.port).catch(() => undefined)
  expect((await jobOf(accepted)).status).toBe('Running')
  target.hook = {}
  leaseEnds()
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
})

test('a way back that cannot be gone to its end says so', async () => {
  const { target, accepted, older } = await applying(unfit)
  target.hook.before = async ({ name }) => {
    if (name === 'revert') throw final('A function has gone.')
  }
  await work(accepted, target.port)
  const { status, result } = await jobOf(accepted)
  expect(status).toBe('Failed')
  expect(result?.output).toMatch(
    new RegExp(`\\. The way back to version ${older.version} is not complete: A function has gone\\.$`),
  )
  expect((await stateNow()).jobId).toBeUndefined()
})

test('what others have deployed meanwhile stays, and the release has no share of it', async () => {
  const { target, accepted, newer } = await applying(good('9.9.9'))
  target.hook.after = async ({ name }) => {
    if (name === 'stage') target.serving = { version: '7.0.0' }
  }
  const changes = changesOf(target)
  await work(accepted, target.port)
  expect(changes).toEqual(['stage', 'shift'])
  expect([target.whole, target.shares]).toEqual([{ version: '7.0.0' }, [`${newer.version} 0`]])
  expect((await jobOf(accepted)).result?.output).toMatch(/Version 7\.0\.0 serves\.$/)
})

test('a share that cannot be taken away holds up no end of an update', async () => {
  const { target, accepted } = await applying(unfit)
  target.hook.after = async ({ name }) => {
    if (name === 'stage') target.serving = { version: '7.0.0' }
  }
  target.hook.before = async ({ name }) => {
    if (name === 'shift') throw new TargetError('Nobody answers.')
  }
  await work(accepted, target.port)
  expect((await jobOf(accepted)).status).toBe('Failed')
})

test('an update is done on one target from its beginning to its end', async () => {
  const { target, accepted } = await applying(unfit)
  target.hook = { before: passingTime }
  let picks = 0
  const { runOperation } = await import('@platform/core/operations/run')
  const { updateHandlers } = await import('@platform/worker/updates/handlers')
  const { names } = await import('./support/feed.ts')
  const pick = async () => {
    picks++
    return target.port
  }
  await runOperation(accepted.reference, updateHandlers(pick, names))
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(picks).toBe(1)
})
