import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type StagedRelease, TargetError } from '@platform/worker/updates/target/port'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { isLong, rounds, sampled } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { startBarrier } from '../support/barrier.ts'
import { writeFunctions } from '../support/platform.ts'
import { runServer } from '../support/program.ts'
import {
  checkout,
  currentIn,
  folderOf,
  identityOf,
  releaseOf,
  reporting,
  request,
  stagedCheckout,
  stagedOf,
  startClients,
  startUpdatable,
  targetOf,
  zipOf,
} from './support.ts'

/** Shared by all tests. After each test, the functions of the checkout serve. */
let platform: Awaited<ReturnType<typeof startUpdatable>>
beforeAll(async () => {
  platform = await startUpdatable()
})
afterAll(() => platform[Symbol.asyncDispose]())
afterEach(async () => expect(await platform.versions()).toEqual(['checkout']))

const release = releaseOf('9.0.0')
const identity = identityOf(release)

test('no request fails while traffic shifts to a release, and back to the checkout', async () => {
  const { target } = platform
  const clients = startClients(platform.url)
  await clients.waitForMore(rounds(60, 200))
  expect([...clients.versions]).toEqual(['checkout'])
  await target.stage(release)
  expect(await target.invoke(identity, 'health', {})).toMatchObject({ body: '9.0.0' })
  await clients.waitForMore(rounds(60, 200))
  expect([...clients.versions]).toEqual(['checkout'])
  for (const share of [10, 50, 100] as const) {
    await target.shift(identity, share)
    await clients.waitForMore(rounds(90, 300))
  }
  await target.commit(identity, checkout)
  await clients.waitForMore(rounds(60, 200))
  expect(clients.versions).toEqual(new Set(['checkout', '9.0.0']))
  expect(await target.current()).toEqual(identity)
  expect(await platform.versions()).toEqual(['9.0.0'])

  await target.stage(stagedCheckout)
  await target.shift(checkout, 100)
  await clients.waitForMore(rounds(60, 200))
  await target.commit(checkout, identity)
  await clients.waitForMore(rounds(60, 200))
  await clients.stop()
  expect(await currentIn(platform.dataDir)).toBeUndefined()
  expect(clients.failures).toEqual([])
  expect(clients.requests).toBeGreaterThan(rounds(500, 1500))
})

test('every step can be repeated', async () => {
  const { target } = platform
  await Promise.all([target.stage(release), target.stage(release)])
  await target.shift(identity, 50)
  await target.stage(release)
  for (let time = 0; time < 2; time++) await target.shift(identity, 100)
  for (let time = 0; time < 2; time++) await target.commit(identity, checkout)
  await target.stage(release)
  await target.shift(identity, 10)
  expect(await platform.versions()).toEqual(['9.0.0'])
  for (let time = 0; time < 2; time++) await target.revert(identity, checkout)
  expect(await currentIn(platform.dataDir)).toBeUndefined()
})

test('a revert from any step keeps the current functions', async () => {
  const { target } = platform
  await target.revert(identity, checkout)
  await target.stage(release)
  await target.revert(identity, checkout)
  await target.stage(release)
  await target.shift(identity, 50)
  await target.revert(identity, checkout)
  await expect(target.shift(identity, 10)).rejects.toThrow('is not staged')
  await expect(target.commit(identity, checkout)).rejects.toThrow('is not staged')
  await expect(target.invoke(identity, 'health', {})).rejects.toThrow('is not staged')
})

test('a commit keeps the previous release for a rollback, and removes older ones', async () => {
  const [one, two, three] = [releaseOf('9.0.0'), releaseOf('9.1.0'), releaseOf('9.2.0')]
  await platform.apply(one)
  await platform.apply(two)
  expect(await platform.releases()).toEqual([folderOf(one), folderOf(two), 'current.json'])
  await platform.apply(three)
  await expect.poll(platform.releases).toEqual([folderOf(two), folderOf(three), 'current.json'])
  await platform.apply({ ...two, fetchFunction: stagedCheckout.fetchFunction })
  expect(await platform.versions()).toEqual(['9.1.0'])
  await platform.apply(stagedCheckout)
})

test.runIf(isLong)('a stage waits while too many versions still complete requests', async () => {
  await using barrier = await startBarrier()
  const slowSources = (version: string) => ({
    jobs: `export const handler = async () => { ${barrier.report('slow')}; return { statusCode: 200, headers: { 'x-version': '${version}' } } }`,
  })
  await using updatable = await startUpdatable(slowSources('checkout'))
  const pending = [request(`${updatable.url}/api/v1/jobs`)]
  await barrier.waitForReports('slow', 1)
  await updatable.apply(releaseOf('9.0.0', slowSources('9.0.0')))
  pending.push(request(`${updatable.url}/api/v1/jobs`))
  await barrier.waitForReports('slow', 2)
  await updatable.apply(releaseOf('9.1.0', slowSources('9.1.0')))
  const thirdRelease = releaseOf('9.2.0', slowSources('9.2.0'))
  await expect(updatable.target.stage(thirdRelease)).rejects.toMatchObject({ name: 'TargetError', isFinal: false })
  barrier.open()
  expect(await Promise.all(pending)).toMatchObject([{ version: 'checkout' }, { version: '9.0.0' }])
  await expect.poll(() => updatable.target.stage(thirdRelease).then(() => 'staged', String)).toBe('staged')
})

const invalidReleases = [
  ['whose import throws', { health: `throw new Error('no luck')` }, /9\.0\.0 does not start: health: Error: no luck/],
  ['whose queue consumer cannot be imported', { 'queue/batches': `import 'nowhere'` }, /queue\/batches/],
  ['that ends its thread', { health: `process.exit(1)` }, /does not start/],
  ['without a handler', { sites: `export const other = 1` }, /exports no handler/],
  ['with a syntax error', { sites: `{{{` }, /does not start/],
] as const

test.for(sampled(invalidReleases, 2))('rejects a release %s, and keeps serving', async ([, sources, reason]) => {
  const clients = startClients(platform.url, 3)
  const failed = platform.target.stage(releaseOf('9.0.0', sources))
  await expect(failed).rejects.toBeInstanceOf(TargetError)
  await expect(failed).rejects.toMatchObject({ isFinal: true, message: expect.stringMatching(reason) })
  await platform.target.revert({ version: '9.0.0' }, checkout)
  await clients.waitForMore(100)
  await clients.stop()
  expect([clients.failures, [...clients.versions]]).toEqual([[], ['checkout']])
})

test('rejects an incomplete release, a removed one, and a zip with a path outside its folder', async () => {
  const { target, dataDir } = platform
  const incompleteRelease = stagedOf('9.0.0', new Map([['health', zipOf({ 'index.mjs': reporting('9.0.0') })]]))
  await expect(target.stage(incompleteRelease)).rejects.toMatchObject({ isFinal: true })
  const removed = target.stage({ ...stagedCheckout, version: '0.0.1' })
  await expect(removed).rejects.toMatchObject({ isFinal: true, message: expect.stringContaining('no longer') })
  const hostileZip = zipOf({ 'index.mjs': reporting('9.0.0'), '../../../../escaped': 'x' })
  const fetchFunction = async (name: string) => (name === 'health' ? hostileZip : release.fetchFunction(name))
  await expect(target.stage({ ...release, fetchFunction })).rejects.toMatchObject({ isFinal: true })
  for (const folder of [dataDir, join(dataDir, '..')]) expect(await readdir(folder)).not.toContain('escaped')
})

const invalidTokens = [
  ['GET', '/current', undefined, 401, {}],
  ['POST', '/commit', '{}', 401, { authorization: 'Bearer no' }],
  ['PUT', '/function', 'zip', 401, { authorization: 'Basic cGxhdGZvcm06' }],
] as const
const invalidCalls = [
  ['POST', '/nothing', '{}', 404],
  ['DELETE', '/current', undefined, 404],
  ['POST', '/stage', '{', 400],
  ['POST', '/stage', '{"release":{"version":"../../x"},"functionNames":[]}', 400],
  ['POST', '/ready', '{"release":{"version":"1.0.0"},"functionNames":["../x"]}', 400],
  ['PUT', '/function?version=1.0.0&name=health', 'zip', 400],
  ['PUT', `/function?version=1.0.0&digest=sha256:${'a'.repeat(64)}&name=../../health`, 'zip', 400],
  ['POST', '/unanswered', '{"release":{"version":"1.0.0"},"sinceMs":-1}', 400],
  ['POST', '/shift', '{"release":{"version":"1.0.0"},"share":11}', 400],
] as const

test('the update supervisor rejects calls without its token, and invalid calls', async () => {
  const { url, token } = platform.updateSupervisor
  for (const [method, path, body, status, headers = { authorization: `Bearer ${token}` }] of [
    ...invalidTokens,
    ...invalidCalls,
  ]) {
    const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body }) })
    expect([method, path, response.status]).toEqual([method, path, status])
  }
  expect(await platform.target.current()).toEqual(checkout)
})

test('an unreachable update supervisor is not a final error', async () => {
  const unreachableTarget = targetOf({ updateSupervisor: { url: 'http://127.0.0.1:1', token: 'x' } })
  await expect(unreachableTarget.current()).rejects.toMatchObject({ name: 'TargetError', isFinal: false })
})

const [oldRelease, newRelease] = [releaseOf('9.0.0'), releaseOf('9.1.0')]

async function run(folder: string) {
  const functionsDir = await writeFunctions(folder, { health: reporting('checkout') })
  const program = await runServer('platform', join(folder, 'data'), functionsDir)
  const readVersion = async () => (await request(`${program.address.url}/health/live`)).version
  return { ...program, target: targetOf(program.address), version: readVersion }
}

async function update({ target }: Awaited<ReturnType<typeof run>>, release: StagedRelease, stepCount: number) {
  const releaseBefore = await target.current()
  await target.stage(release)
  if (stepCount > 1) await target.shift(identityOf(release), 10)
  if (stepCount > 2) await target.shift(identityOf(release), 100)
  if (stepCount > 3) await target.commit(identityOf(release), releaseBefore)
}

test('after a kill at any step the platform serves the committed release, or ends with advice if it is missing', async () => {
  await using folder = await temporaryFolder()
  let committedVersion = 'checkout'
  for (const release of isLong ? [newRelease, stagedCheckout, oldRelease] : [oldRelease]) {
    for (const stepCount of isLong ? [1, 2, 3, 4] : [4]) {
      await using platform = await run(folder.path)
      const version = committedVersion === 'checkout' ? checkout.version : committedVersion
      expect(await platform.target.current()).toMatchObject({ version })
      expect(await Promise.all([1, 2, 3].map(platform.version))).toEqual([
        committedVersion,
        committedVersion,
        committedVersion,
      ])
      await update(platform, release, stepCount)
      if (stepCount === 4) committedVersion = release === stagedCheckout ? 'checkout' : release.version
      expect((await currentIn(join(folder.path, 'data'))) ?? 'checkout').toBe(committedVersion)
    }
  }

  const releasesDir = join(folder.path, 'data/releases')
  await rm(join(releasesDir, folderOf(oldRelease)), { recursive: true })
  const advice = `its folder is missing. Remove ${join(releasesDir, 'current.json')} to start with version`
  await expect(run(folder.path)).rejects.toThrow(`Release 9.0.0 cannot be started: ${advice}`)
}, 180_000)
