import { afterAll, afterEach, expect, test, vi } from 'vitest'
import type { InstalledRelease } from '@platform/core/updates/record'
import type { TrafficPercent } from '@platform/worker/updates/target/port'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { rounds, sampled, stride } from '../../support/long.ts'
import { at, deployed, fileOf, outcomeOf, type Platform, releasesFrom, stagedOf, startCloud } from './support/cloud.ts'
import { attempt, endEventsOf, expireLease, queueUpdate, resetClock } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const cloud = await startCloud()
afterAll(async () => {
  await cloud.close()
  await feed.close()
})
afterEach(resetClock)
await bootstrapPlatform()

const allNames = ['health', 'clusters', 'queue/batches']
const someNames = ['health', 'queue/batches']
const withPortal = [...someNames, 'portal']
const released = releasesFrom(feed)

type TargetOptions = Parameters<Platform['target']>[0]

async function run(platform: Platform, plan: Parameters<typeof queueUpdate>[0], options: TargetOptions = {}) {
  const update = await queueUpdate(plan)
  await attempt(update, platform.target(options), platform.names)
  return update
}

const apply = (platform: Platform, release: InstalledRelease, before = deployed, options: TargetOptions = {}) =>
  run(platform, { action: 'apply', release, before }, options)

test('updates and rolls back in real sandboxes without a failed request', async () => {
  const platform = await cloud.deploy('1.0.0', allNames)
  const release = await released(allNames)
  const stopController = new AbortController()
  const responses = new Map<string, number>()
  const runClient = async (_: unknown, index: number) => {
    while (!stopController.signal.aborted) {
      const version = await platform.request(allNames[index % 2] ?? '')
      responses.set(version, (responses.get(version) ?? 0) + 1)
    }
  }
  const clients = Promise.all(Array.from({ length: rounds(2, 10) }, runClient))
  const options = { hasSandboxes: true }
  const update = await apply(platform, release, deployed, options)
  expect(await outcomeOf(update)).toBe(`Completed: Version ${release.version} serves.`)
  expect(await platform.aliases()).toEqual(at('2'))
  expect(await platform.request('health')).toBe(release.version)
  const rollback = await run(platform, { action: 'rollback', release: deployed, before: release }, options)
  expect(await outcomeOf(rollback)).toBe('Completed: Version 1.0.0 serves.')
  stopController.abort()
  await clients
  expect(await platform.aliases()).toEqual(at('1'))
  expect(await platform.versions('clusters')).toEqual([
    ['1', 'deployed'],
    ['2', release.version],
  ])
  expect([...responses.keys()].toSorted()).toEqual(['1.0.0', release.version])
})

test('sets the share of each alias, and of the portal only at 100 percent', async () => {
  const platform = await cloud.deploy('1.0.0', withPortal)
  const [release, target] = [await released(withPortal), platform.target()]
  await target.stage(stagedOf(release, withPortal))
  expect(await platform.aliases()).toEqual(at('1'))
  const shares: TrafficPercent[] = [10, 50, 0, 50, 100]
  for (const share of shares) {
    await target.shift(release, share)
    expect(await platform.aliasOf('portal')).toEqual({ main: '1', weights: share === 100 ? { 2: 1 } : {} })
    expect(await platform.aliasOf('health')).toEqual({ main: '1', weights: share === 0 ? {} : { 2: share / 100 } })
    expect(await target.current()).toEqual(deployed)
  }
  await target.commit(release, deployed)
  expect(await platform.aliases()).toEqual(at('2'))
})

test('updates the portal last and rolls it back first', async () => {
  const names = ['portal', ...someNames, 'clusters']
  const platform = await cloud.deploy('1.0.0', names)
  const release = await released(names)
  const moves: string[] = []
  const target = platform.target({
    intercept: async ({ method, path }, send) => {
      const [, name] = /\/functions\/platform\d+-([a-z-]+)\/aliases\//.exec(path) ?? []
      if (method === 'PUT' && name !== undefined) moves.push(name)
      return send()
    },
  })
  const expectPortal = async (change: Promise<void>, position: 'first' | 'last') => {
    await change
    const portal = position === 'first' ? moves.shift() : moves.pop()
    expect([portal, ...moves.splice(0).toSorted()]).toEqual(['portal', 'clusters', 'health', 'queue-batches'])
  }
  await target.stage(stagedOf(release, names))
  await expectPortal(target.shift(release, 100), 'last')
  await expectPortal(target.shift(release, 0), 'first')
  await expectPortal(target.shift(release, 100), 'last')
  await expectPortal(target.revert(release, deployed), 'first')
  await target.shift(release, 100)
  await target.commit(release, deployed)
  moves.splice(0)
  await expectPortal(target.shift(deployed, 100, true), 'first')
})

test('gives no traffic to a release that crashes at start, and rolls back', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  const release = await released(someNames, { 'queue/batches': fileOf('VERSION', '', "throw new Error('no luck')") })
  const update = await apply(platform, release, deployed, { hasSandboxes: true })
  expect(await outcomeOf(update)).toMatch(
    new RegExp(`^Failed: Function .+ of version ${release.version} .+ Version 1\\.0\\.0 serves\\.$`),
  )
  expect((await endEventsOf(update)).map((event) => event.name)).toEqual(['update.failed', 'job.failed'])
  expect(await platform.aliases()).toEqual(at('1'))
})

test('keeps the previous release and the deployed version, and deletes other old versions', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  const [first, previousRelease, currentRelease] = [
    await released(someNames),
    await released(someNames),
    await released(someNames),
  ]
  await apply(platform, first)
  await apply(platform, previousRelease, first)
  await apply(platform, currentRelease, previousRelease)
  expect(await platform.versions('health')).toEqual([
    ['1', 'deployed'],
    ['3', previousRelease.version],
    ['4', currentRelease.version],
  ])
  expect(await platform.aliases()).toEqual(at('4'))
  await run(platform, { action: 'rollback', release: previousRelease, before: currentRelease })
  expect(await platform.aliases()).toEqual(at('3'))
})

test('activates the functions of an inactive release before it serves again', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  const release = await released(someNames)
  await apply(platform, release)
  for (const name of someNames) platform.deactivate(name, '1')
  // To read the version number of a deployed version, the worker invokes it, which also activates it.
  const rollback = await queueUpdate({ action: 'rollback', release: deployed, before: release })
  for (let count = 0; count < 4; count++) {
    await attempt(rollback, platform.target({ hasSandboxes: true }), someNames)
    expireLease()
  }
  expect(await outcomeOf(rollback)).toBe('Completed: Version 1.0.0 serves.')
  platform.deactivate('health', '2')
  const update = await apply(platform, release, deployed, { hasSandboxes: true })
  expect(await outcomeOf(update)).toBe(`Completed: Version ${release.version} serves.`)
})

test('applies an update over one broken function, but not if no function reports its version', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  await platform.redeploy('queue/batches', 'throw new Error("no luck")')
  const release = await released(someNames)
  expect(await outcomeOf(await apply(platform, release))).toBe(`Completed: Version ${release.version} serves.`)
  const otherRelease = await cloud.deploy('1.0.0', someNames)
  for (const name of someNames) await otherRelease.redeploy(name, 'throw new Error("no luck")')
  expect(await outcomeOf(await apply(otherRelease, release))).toMatch(
    /^Failed: Version unknown serves instead of 1\.0\.0/,
  )
})

test('fails for a function that is not deployed', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  const update = await queueUpdate({ action: 'apply', release: await released(allNames), before: deployed })
  await attempt(update, platform.target({ names: allNames }), allNames)
  expect(await outcomeOf(update)).toMatch(/^Failed: .*ResourceNotFoundException/)
  expect(await platform.aliases()).toEqual(at('1'))
})

test('stops when another process moves an alias, and leaves that alias unchanged', async () => {
  const platform = await cloud.deploy('1.0.0', someNames)
  const target = platform.target()
  const shift = async (to: InstalledRelease, share: TrafficPercent) => {
    if (share === 50) await platform.redeploy('health', fileOf('9.0.0'))
    await target.shift(to, share)
  }
  const update = await queueUpdate({ action: 'apply', release: await released(someNames), before: deployed })
  await attempt(update, { ...target, shift }, someNames)
  expect(await outcomeOf(update)).toMatch(
    /^Failed: The alias platform\d+-health:live was changed outside of this update\. It is left unchanged\. The rollback/,
  )
  expect(await platform.aliasOf('health')).toEqual({ main: '3', weights: {} })
  expect(await platform.aliasOf('queue/batches')).toEqual({ main: '1', weights: {} })
})

const isWrite = ({ method, path }: { method: string; path: string }): boolean =>
  method !== 'GET' && !path.endsWith('/invocations')

const disconnect = () => Promise.reject(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }))

function disconnectAt(nth: number, when: 'before' | 'after') {
  const counter = { writes: 0 }
  const intercept: NonNullable<TargetOptions>['intercept'] = async (request, send) => {
    if (counter.writes >= nth) return disconnect()
    if (!isWrite(request) || ++counter.writes < nth) return send()
    if (when === 'after') await send()
    return disconnect()
  }
  return { options: { intercept, maxAttempts: 1 }, counter }
}

test.each(
  sampled([
    ['apply', 'after'],
    ['rollback', 'before'],
  ] as const),
)('completes an update (%s) whose worker was killed at any write, %s its effect', async (action, when) => {
  let wasKilled = true
  for (let nth = 1; wasKilled; nth += 2 * stride - 1) {
    const platform = await cloud.deploy('1.0.0', withPortal)
    const release = await released(withPortal)
    const { options, counter } = disconnectAt(nth, when)
    const update = await run(platform, { action, release, before: deployed }, options)
    wasKilled = counter.writes >= nth
    expireLease()
    await attempt(update, platform.target(), withPortal)
    expect(await outcomeOf(update)).toBe(`Completed: Version ${release.version} serves.`)
    expect(await platform.aliases()).toEqual(at('2'))
    expect(await platform.versions('health')).toEqual([
      ['1', 'deployed'],
      ['2', release.version],
    ])
  }
})
