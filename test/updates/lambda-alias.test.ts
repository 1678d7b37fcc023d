import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { type InstalledRelease } from '@platform/core/update-row'
import { type Share } from '@platform/updates/target/port'
import { started } from '../support/world.ts'
import { at, deployed, fileOf, outcomeOf, type Platform, releasesFrom, startCloud, zipOf } from './support/cloud.ts'
import { accept, clockBack, leaseEnds, toldOf, work } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const dice: number[] = []
const cloud = await startCloud({ random: () => dice.shift() ?? Math.random() })
afterAll(async () => {
  await cloud.close()
  await feed.close()
})
afterEach(clockBack)
await started()

const all = ['health', 'clusters', 'queue/jobs']
const few = ['health', 'queue/jobs']

const released = releasesFrom(feed)

const apply = async (platform: Platform, release: InstalledRelease, before: InstalledRelease) => {
  const accepted = await accept({ action: 'apply', release, before })
  await work(accepted, platform.target(), platform.names)
  return accepted
}

test('an update and the way back: ten clients ask all the while, and none of them hears of it', async () => {
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
  const clients = Promise.all(Array.from({ length: 10 }, client))
  expect(await outcomeOf(await apply(platform, release, deployed))).toBe(
    `Completed: Version ${release.version} serves.`,
  )
  expect(await platform.places()).toEqual(at('2'))
  expect(await platform.ask('health')).toBe(release.version)
  const back = await accept({ action: 'rollback', release: deployed, before: release })
  await work(back, platform.target(), all)
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
  const shares: Share[] = [10, 50, 100, 0]
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

const broken = {
  'answers 500 to half of what it is asked': { health: fileOf('VERSION', 'if (count % 2) return { statusCode: 500 }') },
  'crashes when it begins': { 'queue/jobs': fileOf('VERSION', '', "throw new Error('no luck')") },
  'ends when it begins': { 'queue/jobs': fileOf('VERSION', '', 'process.exit(3)') },
  'hangs at every request': { health: fileOf('VERSION', 'await new Promise((resolve) => setTimeout(resolve, 1e6))') },
  'has no handler': { 'queue/jobs': 'export const other = 1' },
}

test.each(Object.keys(broken) as (keyof typeof broken)[])(
  'a release that %s goes back by itself, and nobody was asked by it',
  async (name) => {
    const platform = await cloud.deploy('1.0.0', few)
    const release = await released(few, broken[name])
    const accepted = await apply(platform, release, deployed)
    expect(await outcomeOf(accepted)).toMatch(
      new RegExp(`^Failed: Function .+ of version ${release.version} .+ Version 1\\.0\\.0 serves\\.$`),
    )
    expect((await toldOf(accepted)).map((event) => event.name)).toEqual(['update.failed', 'job.failed'])
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
  const back = await accept({ action: 'rollback', release: before, before: current })
  await work(back, platform.target(), few)
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
  const back = await accept({ action: 'rollback', release: deployed, before: release })
  for (let count = 0; count < 4; count++) {
    await work(back, platform.target(), few)
    leaseEnds()
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
  const accepted = await accept({ action: 'apply', release, before: deployed })
  await work(accepted, platform.target({}, all), all)
  expect(await outcomeOf(accepted)).toMatch(/^Failed: .*ResourceNotFoundException/)
  expect(await platform.places()).toEqual(at('1'))
})
