import { NodeHttpHandler } from '@smithy/node-http-handler'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { type InstalledRelease } from '@platform/core/updates/record'
import { type TrafficPercent } from '@platform/worker/updates/target/port'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { at, deployed, fileOf, outcomeOf, type Platform, releasesFrom, startCloud, zipOf } from './support/cloud.ts'
import { queueUpdate, resetClock, expireLease, endEventsOf, attempt } from './support/updating.ts'
import { rounds, sampled } from '../../support/long.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const dice: number[] = []
const cloud = await startCloud({ random: () => dice.shift() ?? Math.random() })
afterAll(async () => {
  await cloud.close()
  await feed.close()
})
afterEach(resetClock)
await bootstrapPlatform()

const all = ['health', 'clusters', 'queue/jobs']
const few = ['health', 'queue/jobs']

const released = releasesFrom(feed)

const apply = async (platform: Platform, release: InstalledRelease, before: InstalledRelease) => {
  const accepted = await queueUpdate({ action: 'apply', release, before })
  await attempt(accepted, platform.target(), platform.names)
  return accepted
}

test('an update and the way back: clients ask all the while, and none of them hears of it', async () => {
  const platform = await cloud.deploy('1.0.0', all)
  const release = await released(all)
  const clientsLeave = new AbortController()
  const answers = new Map<string, number>()
  const client = async (_: unknown, index: number) => {
    while (!clientsLeave.signal.aborted) {
      const answer = await platform.ask(all[index % 2] ?? '')
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
    }
  }
  const clients = Promise.all(Array.from({ length: rounds(4, 10) }, client))
  expect(await outcomeOf(await apply(platform, release, deployed))).toBe(
    `Completed: Version ${release.version} serves.`,
  )
  expect(await platform.places()).toEqual(at('2'))
  expect(await platform.ask('health')).toBe(release.version)
  const back = await queueUpdate({ action: 'rollback', release: deployed, before: release })
  await attempt(back, platform.target(), all)
  expect(await outcomeOf(back)).toBe('Completed: Version 1.0.0 serves.')
  clientsLeave.abort()
  await clients
  expect(await platform.places()).toEqual(at('1'))
  expect(await platform.versions('clusters')).toEqual([
    ['1', 'deployed'],
    ['2', release.version],
  ])
  expect([...answers.keys()].toSorted()).toEqual(['1.0.0', release.version])
  expect(Math.min(...answers.values())).toBeGreaterThan(10)
})

test('a release gets its share of what comes in, and the version before all else', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  const [release, target] = [await released(few), platform.target()]
  const { version, digest, repository } = release
  const fetchFunction = async () => zipOf(fileOf(version))
  await target.stage({ ...release, functionNames: few, fetchFunction })
  expect(await platform.places()).toEqual(at('1'))
  const shares: TrafficPercent[] = [10, 50, 100, 0]
  for (const share of shares) {
    await target.shift({ version, digest, repository }, share)
    const weights = share === 0 ? {} : { 2: share / 100 }
    expect(await platform.places()).toEqual(new Set([JSON.stringify({ main: '1', weights })]))
    expect(await target.current()).toEqual(deployed)
    dice.push(Math.max(share / 100 - 0.01, 0), Math.min(share / 100 + 0.01, 0.999))
    const heard = [await platform.ask('health'), await platform.ask('health')]
    expect(heard).toEqual([share === 0 ? '1.0.0' : version, share === 100 ? version : '1.0.0'])
  }
})

test('the portal gets all or nothing: its page and what that names are of one version', async () => {
  const names = [...few, 'portal']
  const platform = await cloud.deploy('1.0.0', names)
  const [release, target] = [await released(names), platform.target()]
  await target.stage({ ...release, functionNames: names, fetchFunction: async () => zipOf(fileOf(release.version)) })
  for (const share of [10, 50, 0, 50, 100] as const) {
    await target.shift(release, share)
    expect(await platform.aliasOf('portal')).toEqual({ main: '1', weights: share === 100 ? { 2: 1 } : {} })
    expect(await platform.aliasOf('health')).toEqual({ main: '1', weights: share === 0 ? {} : { 2: share / 100 } })
  }
  await target.commit(release, deployed)
  expect(await platform.places()).toEqual(at('2'))
})

test('the portal is never ahead of the API: it follows an update last, and goes back first', async () => {
  const names = ['portal', ...few, 'clusters']
  const platform = await cloud.deploy('1.0.0', names)
  const release = await released(names)
  const moved: string[] = []
  const inner = new NodeHttpHandler()
  const requestHandler: NodeHttpHandler = Object.assign(Object.create(inner), {
    handle: async (request: any, options: any) => {
      const [, name] = /\/functions\/platform\d+-([a-z-]+)\/aliases\//.exec(request.path) ?? []
      if (request.method === 'PUT' && name !== undefined) moved.push(name)
      return inner.handle(request, options)
    },
  })
  const target = platform.target({ requestHandler })
  const movedBy = async (change: Promise<void>) => {
    await change
    return moved.splice(0)
  }
  const others = ['clusters', 'health', 'queue-jobs']
  await target.stage({ ...release, functionNames: names, fetchFunction: async () => zipOf(fileOf(release.version)) })
  const forth = await movedBy(target.shift(release, 100))
  expect([forth.at(-1), forth.slice(0, -1).toSorted()]).toEqual(['portal', others])
  const withdrawn = await movedBy(target.shift(release, 0))
  expect([withdrawn[0], withdrawn.slice(1).toSorted()]).toEqual(['portal', others])
  await target.shift(release, 100)
  moved.splice(0)
  const undone = await movedBy(target.revert(release, deployed))
  expect([undone[0], undone.slice(1).toSorted()]).toEqual(['portal', others])
  await target.shift(release, 100)
  await target.commit(release, deployed)
  moved.splice(0)
  const back = await movedBy(target.shift(deployed, 100, true))
  expect([back[0], back.slice(1).toSorted()]).toEqual(['portal', others])
})

const broken = {
  'answers 500 to half of what it is asked': { health: fileOf('VERSION', 'if (count % 2) return { statusCode: 500 }') },
  'crashes when it begins': { 'queue/jobs': fileOf('VERSION', '', "throw new Error('no luck')") },
  'ends when it begins': { 'queue/jobs': fileOf('VERSION', '', 'process.exit(3)') },
  'hangs at every request': { health: fileOf('VERSION', 'await new Promise((resolve) => setTimeout(resolve, 1e6))') },
  'has no handler': { 'queue/jobs': 'export const other = 1' },
}

// By default one that fails at requests, and one that does not answer at all.
test.each(sampled(Object.keys(broken) as (keyof typeof broken)[]))(
  'a release that %s goes back by itself, and nobody was asked by it',
  async (name) => {
    const platform = await cloud.deploy('1.0.0', few)
    const release = await released(few, broken[name])
    const accepted = await apply(platform, release, deployed)
    expect(await outcomeOf(accepted)).toMatch(
      new RegExp(`^Failed: Function .+ of version ${release.version} .+ Version 1\\.0\\.0 serves\\.$`),
    )
    expect((await endEventsOf(accepted)).map((event) => event.name)).toEqual(['update.failed', 'job.failed'])
    expect(await platform.places()).toEqual(at('1'))
    expect(await platform.ask('health')).toBe('1.0.0')
  },
)

test('the release before is kept and what is older goes, but what was deployed stays', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  const releases = [deployed, await released(few), await released(few), await released(few)]
  for (const [place, release] of releases.slice(1).entries()) {
    await apply(platform, release, releases[place] ?? deployed)
  }
  expect(await platform.versions('health')).toEqual([
    ['1', 'deployed'],
    ['3', releases[2]?.version],
    ['4', releases[3]?.version],
  ])
  expect(await platform.places()).toEqual(at('4'))
  const [, , before, current] = releases as [InstalledRelease, InstalledRelease, InstalledRelease, InstalledRelease]
  const back = await queueUpdate({ action: 'rollback', release: before, before: current })
  await attempt(back, platform.target(), few)
  expect(await outcomeOf(back)).toBe(`Completed: Version ${before.version} serves.`)
  expect(await platform.places()).toEqual(at('3'))
})

test('a release that nobody has called for weeks is woken before it serves again', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  const release = await released(few)
  await apply(platform, release, deployed)
  platform.fallAsleep('health', '1')
  platform.fallAsleep('queue/jobs', '1')
  // The deployed one says which version it is of when it is asked, which wakes it too.
  const back = await queueUpdate({ action: 'rollback', release: deployed, before: release })
  for (let count = 0; count < 4; count++) {
    await attempt(back, platform.target(), few)
    expireLease()
  }
  expect(await outcomeOf(back)).toBe('Completed: Version 1.0.0 serves.')
  platform.fallAsleep('health', '2')
  expect(await outcomeOf(await apply(platform, release, deployed))).toBe(
    `Completed: Version ${release.version} serves.`,
  )
})

test('a function that was deployed broken does not keep an update away that mends it', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  await platform.deployOver('queue/jobs', 'throw new Error("no luck")')
  const release = await released(few)
  expect(await outcomeOf(await apply(platform, release, deployed))).toBe(
    `Completed: Version ${release.version} serves.`,
  )
  await platform.ask('queue/jobs')
  const other = await cloud.deploy('1.0.0', few)
  for (const name of few) await other.deployOver(name, 'throw new Error("no luck")')
  expect(await outcomeOf(await apply(other, release, deployed))).toMatch(
    /^Failed: Version unknown serves and not 1\.0\.0/,
  )
})

test('a function that the cloud does not have needs a deployment', async () => {
  const platform = await cloud.deploy('1.0.0', few)
  const release = await released(all)
  const accepted = await queueUpdate({ action: 'apply', release, before: deployed })
  await attempt(accepted, platform.target({}, all), all)
  expect(await outcomeOf(accepted)).toMatch(/^Failed: .*ResourceNotFoundException/)
  expect(await platform.places()).toEqual(at('1'))
})
