import { NodeHttpHandler } from '@smithy/node-http-handler'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { type InstalledRelease } from '@platform/core/updates/record'
import { type TrafficPercent } from '@platform/worker/updates/target/port'
import { isLong, rounds, sampled, stride } from '../../support/long.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { at, deployed, fileOf, outcomeOf, releasesFrom, startCloud } from './support/cloud.ts'
import { queueUpdate, resetClock, expireLease, attempt } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const cloud = await startCloud()
afterAll(async () => {
  await cloud.close()
  await feed.close()
})
afterEach(resetClock)
await bootstrapPlatform()

const few = ['health', 'queue/jobs']
/** Of these the portal is not divided. */
const withPortal = [...few, 'portal']

const released = releasesFrom(feed)

test('an alias that somebody else moves stops the update, which says so and leaves that one alone', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  const release = await released(few)
  const target = platform.target()
  const shift = async (to: InstalledRelease, share: TrafficPercent) => {
    if (share === 50) await platform.deployOver('health', fileOf('9.0.0'))
    await target.shift(to, share)
  }
  const accepted = await queueUpdate({ action: 'apply', release, before: deployed })
  await attempt(accepted, { ...target, shift }, few)
  expect(await outcomeOf(accepted)).toMatch(
    /^Failed: The alias platform\d+-health:live was changed outside of this update\. It is left unchanged\. The way back/,
  )
  expect(await platform.aliasOf('health')).toEqual({ main: '3', weights: {} })
  expect(await platform.aliasOf('queue/jobs')).toEqual({ main: '1', weights: {} })
})

const isWrite = ({ method, path }: { method: string; path: string }): boolean =>
  method !== 'GET' && !path.endsWith('/invocations')

const gone = () => Promise.reject(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }))

/** The way to Lambda, which is gone from the n-th change on: before it is made, or before its answer is heard. */
function cutAt(n: number, when: 'before' | 'after') {
  const inner = new NodeHttpHandler()
  const seen = { writes: 0 }
  const requestHandler: NodeHttpHandler = Object.assign(Object.create(inner), {
    handle: async (request: any, options: any) => {
      if (seen.writes >= n) return gone()
      if (!isWrite(request) || ++seen.writes < n) return inner.handle(request, options)
      if (when === 'after') await inner.handle(request, options)
      return gone()
    },
  })
  return { requestHandler, seen }
}

test.each(
  sampled([
    ['apply', 'after'],
    ['rollback', 'before'],
  ] as const),
)(
  'a worker (%s) that is killed at any change, %s it is made, is followed by one that ends it whole',
  async (action, when) => {
    let wasCut = true
    for (let n = 1; wasCut; n += 2 * stride - 1) {
      const platform = await cloud.deploy('1.0.0', withPortal)
      const release = await released(withPortal)
      const { requestHandler, seen } = cutAt(n, when)
      const accepted = await queueUpdate({ action, release, before: deployed })
      await attempt(accepted, platform.target({ requestHandler, maxAttempts: 1 }), withPortal)
      wasCut = seen.writes >= n
      expireLease()
      await attempt(accepted, platform.target(), withPortal)
      expect(await outcomeOf(accepted)).toBe(`Completed: Version ${release.version} serves.`)
      expect(await platform.places()).toEqual(at('2'))
      expect(await platform.versions('health')).toEqual([
        ['1', 'deployed'],
        ['2', release.version],
      ])
    }
  },
  300_000,
)

test.each((['before', 'after'] as const).slice(isLong ? 0 : 1))(
  'the way back from a broken release, cut off at any change %s it is made, is gone to its end by the next one',
  async (when) => {
    const cut = { n: 1, was: true }
    for (; cut.was; cut.n += 2 * stride - 1) {
      const platform = await cloud.deploy('1.0.0', withPortal)
      const release = await released(withPortal)
      const accepted = await queueUpdate({ action: 'apply', release, before: deployed })
      // It is committed in part, and then something is wrong.
      const first = platform.target()
      const commit = async () => {
        await first.shift(release, 100)
        const half = cutAt(2, 'before')
        await platform
          .target({ requestHandler: half.requestHandler, maxAttempts: 1 })
          .commit(release, deployed)
          .catch(() => undefined)
        const { requestHandler, seen } = cutAt(cut.n, when)
        const late = platform.target({ requestHandler, maxAttempts: 1 })
        await late.revert(release, deployed).catch(() => undefined)
        cut.was = seen.writes >= cut.n
        throw new Error('The worker is gone.')
      }
      await attempt(accepted, { ...first, commit }, withPortal)
      const target = platform.target()
      expect(await target.current()).toEqual(deployed)
      await target.revert(release, deployed)
      expect(await platform.places()).toEqual(at('1'))
    }
  },
  120_000,
)

test('Lambda that is asked too often is asked again', async () => {
  // It is asked less often from then on, so that each further function takes its time.
  const names = few.slice(0, rounds(1, 2))
  const platform = await cloud.deploy('1.0.0', names)
  const inner = new NodeHttpHandler()
  const most = rounds(1, 3)
  let refused = 0
  const requestHandler: NodeHttpHandler = Object.assign(Object.create(inner), {
    handle: async (request: any, options: any) => {
      const answer = await inner.handle(request, options)
      if (!isWrite(request) || refused >= most) return answer
      refused++
      throw Object.assign(new Error('Rate exceeded'), { name: 'TooManyRequestsException', $fault: 'client' })
    },
  })
  const release = await released(names)
  const accepted = await queueUpdate({ action: 'apply', release, before: deployed })
  await attempt(accepted, platform.target({ requestHandler }), names)
  expect(await outcomeOf(accepted)).toBe(`Completed: Version ${release.version} serves.`)
  expect(refused).toBe(most)
})
