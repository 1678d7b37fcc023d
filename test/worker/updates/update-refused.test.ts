import { afterAll, afterEach, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { started } from '../../support/world.ts'
import { updatesFrom } from './support/applying.ts'
import { MemoryTarget } from './support/memory-target.ts'
import { accept, clockBack, expectWhole, jobOf, stateNow, work } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(feed.close)
afterEach(clockBack)
await started()
const { newReleases, applying } = updatesFrom(feed)

let turn = 0
test.each([
  ['is not signed by a trusted key', { signer: 'stranger' }, /\S/],
  ['needs other infrastructure', { document: { infrastructure: '0'.repeat(64) } }, /other infrastructure/],
  ['has not all functions', { functions: { health: '', clusters: '' } }, /has other functions: queue\/jobs\./],
  [
    'has functions that the platform has not',
    { functions: { health: '', clusters: '', 'queue/jobs': '', other: '' } },
    /has other functions: other\./,
  ],
] as const)('a release that %s is not staged', async (_, wish, reason) => {
  const { older } = await newReleases()
  const target = new MemoryTarget(older)
  const release = await feed.released(`2.0.${turn++}`, wish)
  const accepted = await accept({ action: 'apply', release, before: older })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect((await jobOf(accepted)).result?.output).toMatch(reason)
  expect(target.staged.size).toBe(1)
})

test('a release whose keys have left the trust list, or that is gone, is not staged', async () => {
  const { older } = await newReleases()
  const target = new MemoryTarget(older)
  const release = { ...older, version: '3.0.0', digest: `sha256:${'0'.repeat(64)}` }
  const accepted = await accept({ action: 'apply', release, before: older })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
})

test('a release that is ready since another time is verified again all the same', async () => {
  const { older } = await newReleases()
  const target = new MemoryTarget(older)
  const release = await feed.released('2.1.0', { signer: 'stranger' })
  target.staged.set(`${release.version} ${release.digest}`, new Map())
  const accepted = await accept({ action: 'apply', release, before: older })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([])
})

test('a platform that was deployed meanwhile stays as it is', async () => {
  const { target, accepted, older } = await applying()
  target.serving = { version: '7.0.0' }
  await work(accepted, target.port)
  expect(target.whole).toEqual({ version: '7.0.0' })
  const { status, result } = await jobOf(accepted)
  expect(status).toBe('Failed')
  expect(result?.output).toBe(
    `Version 7.0.0 serves and not ${older.version}: it was deployed meanwhile. Version 7.0.0 serves.`,
  )
})

test('an update whose lock is gone changes nothing', async () => {
  const { target, accepted, older } = await applying()
  await transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])
  const calls: string[] = []
  target.hook.before = async ({ name }) => void calls.push(name)
  await work(accepted, target.port)
  expect(calls).toEqual([])
  const { status, result } = await jobOf(accepted)
  expect([status, result?.output]).toEqual(['Failed', 'Something else changes the platform by now.'])
  expect(await stateNow()).toMatchObject({ jobId: 'job_other', current: older })
  expect([target.whole, target.staged.size]).toEqual([older, 1])
})

test.each([{}, { digest: `sha256:${'3'.repeat(64)}` }, { repository: '127.0.0.1:9/platform/releases' }])(
  'a way back whose release is neither ready nor to be had ends, and nothing has changed: %j',
  async (known) => {
    const { newer } = await newReleases()
    const target = new MemoryTarget(newer)
    const accepted = await accept({ action: 'rollback', release: { version: '0.9.0', ...known }, before: newer })
    await work(accepted, target.port)
    expect(await expectWhole(accepted, target)).toBe('Failed')
    expect((await jobOf(accepted)).result?.output).toContain('was deployed, not applied')
  },
)
