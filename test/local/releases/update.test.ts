import type { StagedRelease } from '@platform/worker/updates/target/port'
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startGate } from '../runner/gate.ts'
import { ask, hammer } from './clients.ts'
import { currentIn, folderOf, named, releaseOf, saying } from './support.ts'
import { apply, checkout, startUpdatable, versionsOf } from './updatable.ts'
import { rounds } from '../../support/long.ts'
import { isLong } from '../../support/long.ts'

const nowhere = () => Promise.reject(new Error('its repository is gone'))

test('ten clients lose no request while a release takes over step by step, and while it goes back', async () => {
  await using platform = await startUpdatable()
  const { target } = platform
  const release = releaseOf('9.0.0')
  const clients = hammer(platform.url)
  await clients.more(rounds(60, 200))
  expect([...clients.versions]).toEqual(['own'])
  await target.stage(release)
  expect(await target.invoke(named(release), 'health', {})).toMatchObject({ body: '9.0.0' })
  await clients.more(rounds(60, 200))
  expect([...clients.versions]).toEqual(['own'])
  for (const share of [10, 50, 100] as const) {
    await target.shift(named(release), share)
    await clients.more(rounds(90, 300))
  }
  await target.commit(named(release), checkout)
  await clients.more(rounds(60, 200))
  expect(clients.versions).toEqual(new Set(['own', '9.0.0']))
  expect(await target.current()).toEqual(named(release))
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['9.0.0']))

  // And back, to the functions that came with the platform.
  await target.stage({ ...checkout, functionNames: [], fetchFunction: nowhere })
  await target.shift(checkout, 100)
  await clients.more(rounds(60, 200))
  await target.commit(checkout, named(release))
  await clients.more(rounds(60, 200))
  await clients.stop()
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['own']))
  expect(await currentIn(platform.dataDir)).toBeUndefined()
  expect(clients.failures).toEqual([])
  expect(clients.requests).toBeGreaterThan(rounds(500, 1500))
})

test.runIf(isLong)('of a hundred requests a release gets as many as its share says', async () => {
  await using platform = await startUpdatable()
  const release = releaseOf('9.0.0')
  await platform.target.stage(release)
  const shares: [0 | 10 | 50 | 100, number][] = [
    [0, 0],
    [10, 10],
    [50, 50],
    [100, 100],
  ]
  for (const [share, expected] of shares) {
    await platform.target.shift(named(release), share)
    const said = await versionsOf(platform, 100, '/api/v1/sites')
    expect(said.filter((version) => version === '9.0.0')).toHaveLength(expected)
  }
})

test('every step may come twice', async () => {
  await using platform = await startUpdatable()
  const { target } = platform
  const release = releaseOf('9.0.0')
  await Promise.all([target.stage(release), target.stage(release)])
  await target.shift(named(release), 50)
  await target.stage(release)
  for (let time = 0; time < 2; time++) await target.shift(named(release), 100)
  for (let time = 0; time < 2; time++) await target.commit(named(release), checkout)
  await target.stage(release)
  await target.shift(named(release), 10)
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['9.0.0']))
  for (let time = 0; time < 2; time++) await target.revert(named(release), checkout)
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['own']))
  expect(await currentIn(platform.dataDir)).toBeUndefined()
})

test('an update that is taken back leaves what served, from any step', async () => {
  await using platform = await startUpdatable()
  const { target } = platform
  const release = releaseOf('9.0.0')
  await target.revert(named(release), checkout)
  await target.stage(release)
  await target.revert(named(release), checkout)
  await target.stage(release)
  await target.shift(named(release), 50)
  await target.revert(named(release), checkout)
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['own']))
  await expect(target.shift(named(release), 10)).rejects.toThrow('is not staged')
  await expect(target.commit(named(release), checkout)).rejects.toThrow('is not staged')
  await expect(target.invoke(named(release), 'health', {})).rejects.toThrow('is not staged')
})

test('a commit keeps what served before, for the way back, and removes all others', async () => {
  await using platform = await startUpdatable()
  const [one, two, three] = [releaseOf('9.0.0'), releaseOf('9.1.0'), releaseOf('9.2.0')]
  await apply(platform, one)
  await apply(platform, two)
  expect(await platform.releases()).toEqual([folderOf(one), folderOf(two), 'current.json'])
  await apply(platform, three)
  await expect.poll(platform.releases).toEqual([folderOf(two), folderOf(three), 'current.json'])
  await apply(platform, { ...two, fetchFunction: nowhere })
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['9.1.0']))
})

test.runIf(isLong)('a kept release that is damaged is fetched again', async () => {
  await using platform = await startUpdatable()
  const [one, two] = [releaseOf('9.0.0'), releaseOf('9.1.0')]
  await apply(platform, one)
  await apply(platform, two)
  const program = join(platform.dataDir, 'releases', folderOf(one), 'functions/health/index.mjs')
  await appendFile(program, 'throw new Error("damaged")')
  await apply(platform, one)
  expect(new Set(await versionsOf(platform, 20))).toEqual(new Set(['9.0.0']))
  expect(await readFile(program, 'utf8')).toBe(saying('9.0.0'))
})

test.runIf(isLong)('a request that takes long is answered by the version that began it', async () => {
  await using gate = await startGate()
  const slow = `export const handler = async () => { ${gate.pass('slow')}; return { statusCode: 200, headers: { 'x-version': 'own' } } }`
  await using platform = await startUpdatable({ jobs: slow })
  const underWay = Promise.all([1, 2, 3].map(() => ask(`${platform.url}/api/v1/jobs`)))
  await gate.arrived('slow', 3)
  await apply(platform, releaseOf('9.0.0'))
  expect(await ask(`${platform.url}/api/v1/jobs`)).toEqual({ status: 200, version: '9.0.0' })
  gate.open()
  expect(await underWay).toEqual(Array.from({ length: 3 }, () => ({ status: 200, version: 'own' })))
})

test.runIf(isLong)('a function replaces the functions that it runs among, and ends its work afterwards', async () => {
  const release = releaseOf('9.0.0')
  const body = JSON.stringify({ release: named(release), before: checkout })
  const committing = `export const handler = async () => {
    const headers = { authorization: 'Bearer ' + process.env.PLAT_UPDATE_SUPERVISOR_TOKEN }
    const { status } = await fetch(process.env.PLAT_UPDATE_SUPERVISOR_URL + '/commit', { method: 'POST', headers, body: ${JSON.stringify(body)} })
    await new Promise((resolve) => setTimeout(resolve, 300))
    return { statusCode: status, headers: { 'x-version': 'own' } }
  }`
  await using platform = await startUpdatable({ users: committing })
  await platform.target.stage(release)
  expect(await ask(`${platform.url}/api/v1/users`)).toEqual({ status: 204, version: 'own' })
  expect(await ask(`${platform.url}/api/v1/users`)).toEqual({ status: 200, version: '9.0.0' })
})

const broken = (how: string) => `export const handler = async () => { ${how}; return { statusCode: 200 } }`

test.runIf(isLong)('what functions leave without an answer is counted for the version that they are of', async () => {
  const faulty = {
    jobs: broken(`throw new Error('past everything')`),
    sites: broken(
      `await new Promise((resolve) => { setTimeout(() => void Promise.reject(new Error('nobody cares'))) })`,
    ),
    users: broken(`process.exit()`),
    // As `scheduled` does with what it has counted.
    clusters: broken(`throw Object.assign(new Error('counted'), { [Symbol.for('platform.tallied')]: true })`),
  }
  await using platform = await startUpdatable()
  const { target, url } = platform
  const release = releaseOf('9.0.0', faulty)
  const faults = async (of: StagedRelease | typeof checkout) => target.unanswered(of, 0)
  await target.stage(release)
  await expect(target.invoke(named(release), 'jobs', {})).rejects.toThrow('past everything')
  await target.shift(named(release), 100)
  const statuses: number[] = []
  for (const path of ['jobs', 'sites', 'users', 'clusters']) statuses.push((await ask(`${url}/api/v1/${path}`)).status)
  expect(statuses).toEqual([500, 500, 500, 500])
  expect(await ask(`${url}/health/live`)).toEqual({ status: 200, version: '9.0.0' })
  expect([await faults(release), await faults(checkout)]).toMatchObject([{ faults: 3 }, { faults: 0 }])
  await target.revert(named(release), checkout)
  expect(await faults(release)).toBeUndefined()
})

test.runIf(isLong)('too many versions that have not ended yet put an update off', async () => {
  await using gate = await startGate()
  const slow = (version: string) =>
    `export const handler = async () => { ${gate.pass('slow')}; return { statusCode: 200, headers: { 'x-version': '${version}' } } }`
  await using platform = await startUpdatable({ jobs: slow('own') })
  const underWay = [ask(`${platform.url}/api/v1/jobs`)]
  await gate.arrived('slow', 1)
  const [one, two, three] = ['9.0.0', '9.1.0', '9.2.0'].map((each) => releaseOf(each, { jobs: slow(each) }))
  if (!one || !two || !three) throw new Error('three releases')
  await apply(platform, one)
  underWay.push(ask(`${platform.url}/api/v1/jobs`))
  await gate.arrived('slow', 2)
  await apply(platform, two)
  await expect(platform.target.stage(three)).rejects.toMatchObject({ name: 'TargetError', isFinal: false })
  gate.open()
  expect(await Promise.all(underWay)).toMatchObject([{ version: 'own' }, { version: '9.0.0' }])
  await expect.poll(() => platform.target.stage(three).then(() => 'staged', String)).toBe('staged')
})
