import { expect, test, vi } from 'vitest'
import { runOperation } from '@platform/core/operations/run'
import { updateHandlers } from '@platform/worker/updates/handlers'
import { TargetError } from '@platform/worker/updates/target/port'
import { platformFunctions } from './support/feed.ts'
import { good, type MemoryTarget } from './support/memory-target.ts'
import {
  attempt,
  expectAttempt,
  expectEnd,
  expireLease,
  jobOf,
  readUpdateState,
  setUpUpdates,
} from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { newUpdate } = await setUpUpdates(feed)

const broken = () => 'nonsense'
const final = (message: string): TargetError => new TargetError(message, { isFinal: true })

/** Records the calls that change the target. */
function recordChanges(target: MemoryTarget): string[] {
  const changes: string[] = []
  const { before } = target.hook
  target.hook.before = async (call) => {
    await before?.(call)
    if (['stage', 'shift', 'commit', 'revert'].includes(call.name)) changes.push(call.name)
  }
  return changes
}

/** Another deployment replaces what serves after the release has been staged. */
const deployAfterStage = (target: MemoryTarget) => {
  target.hook.after = async ({ name }) => {
    if (name === 'stage') target.serving = { version: '7.0.0' }
  }
}

test('completes an update that fails after its release serves alone', async () => {
  const { target, update, newer } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'commit') throw final('The previous version could not be removed.')
  }
  expect(await expectAttempt(update, target, 'Completed')).toBe(`Version ${newer.version} serves.`)
})

test('reverts as far as possible if another deployment has changed part of the target', async () => {
  const { target, update, older } = await newUpdate(broken)
  let hasFailed = false
  target.hook.after = async ({ name }) => {
    if (name === 'invoke') hasFailed = true
    if (name === 'current' && hasFailed) throw final('Two versions serve.')
  }
  const changes = recordChanges(target)
  await attempt(update, target.port)
  const { status, result } = await jobOf(update)
  expect([status, changes]).toEqual(['Failed', ['stage', 'revert']])
  expect(result?.output).toMatch(new RegExp(`reports no version\\. Version ${older.version} serves\\.$`))
})

test('reverts later if the target is unavailable', async () => {
  const { target, update } = await newUpdate(broken)
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
  const { target, update, older } = await newUpdate(broken)
  target.hook.before = async ({ name }) => {
    if (name === 'revert') throw final('A function is missing.')
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
  expect([target.whole, target.shares]).toEqual([{ version: '7.0.0' }, [`${newer.version} 0`]])
  expect((await jobOf(update)).result?.output).toMatch(/Version 7\.0\.0 serves\.$/)
})

test('ends even if the share of the release cannot be removed', async () => {
  const { target, update } = await newUpdate(broken)
  deployAfterStage(target)
  target.hook.before = async ({ name }) => {
    if (name === 'shift') throw new TargetError('Unavailable.')
  }
  await attempt(update, target.port)
  expect((await jobOf(update)).status).toBe('Failed')
})

test('uses one target for run and rollback', async () => {
  const { target, update } = await newUpdate(broken)
  let picks = 0
  const pick = async () => {
    picks++
    return target.port
  }
  await runOperation(update.reference, updateHandlers(pick, platformFunctions))
  await expectEnd(update, target, 'Failed')
  expect(picks).toBe(1)
})
