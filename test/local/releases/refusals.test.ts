import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { TargetError } from '@platform/worker/updates/target/port'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sampled } from '../../support/long.ts'
import { hammer } from './clients.ts'
import { releaseOf, saying, stagedOf, targetOf, zipOf } from './support.ts'
import { checkout, startUpdatable, type Updatable } from './updatable.ts'

/** One for all tests: whatever is refused leaves it as it was. */
let platform: Updatable
beforeAll(async () => {
  platform = await startUpdatable()
})
afterAll(() => platform[Symbol.asyncDispose]())

const refused = [
  [
    'whose import throws',
    { health: `throw new Error('cannot be')` },
    /9\.0\.0 does not start: health: Error: cannot be/,
  ],
  ['whose queue consumer cannot be imported', { 'queue/jobs': `import 'nowhere'` }, /queue\/jobs/],
  ['that ends its thread', { health: `process.exit(1)` }, /does not start/],
  ['that exports no handler', { sites: `export const other = 1` }, /exports no handler/],
  ['that is no program', { sites: `{{{` }, /does not start/],
] as const

test.for(sampled(refused, 2))('a release %s is refused for good, and what serves goes on', async ([, bad, reason]) => {
  const clients = hammer(platform.url, 3)
  const failed = platform.target.stage(releaseOf('9.0.0', bad))
  await expect(failed).rejects.toBeInstanceOf(TargetError)
  await expect(failed).rejects.toMatchObject({ isFinal: true, message: expect.stringMatching(reason) })
  await platform.target.revert({ version: '9.0.0' }, checkout)
  await clients.more(100)
  await clients.stop()
  expect(clients.failures).toEqual([])
  expect([...clients.versions]).toEqual(['own'])
})

test('a release without a function that the platform calls, and one that is gone, are refused for good', async () => {
  const lacking = stagedOf('9.0.0', new Map([['health', zipOf({ 'index.mjs': saying('9.0.0') })]]))
  await expect(platform.target.stage(lacking)).rejects.toMatchObject({ isFinal: true })
  const nobody = { functionNames: [], fetchFunction: async () => new Uint8Array() }
  const gone = platform.target.stage({ version: '0.0.1', ...nobody })
  await expect(gone).rejects.toMatchObject({ isFinal: true, message: expect.stringContaining('not here any more') })
})

test('a zip that leaves its folder is refused for good, and nothing of it is on the disk', async () => {
  const good = releaseOf('9.0.0')
  const evil = zipOf({ 'index.mjs': saying('9.0.0'), '../../../../escaped': 'x' })
  const fetchFunction = async (name: string) => (name === 'health' ? evil : good.fetchFunction(name))
  await expect(platform.target.stage({ ...good, fetchFunction })).rejects.toMatchObject({ isFinal: true })
  expect(await readdir(join(platform.dataDir, '..'))).not.toContain('escaped')
  expect(await readdir(platform.dataDir)).not.toContain('escaped')
})

test.for([
  ['without a token', {}, 'GET', '/current', undefined, 401],
  ['with another token', { authorization: 'Bearer no' }, 'POST', '/commit', '{}', 401],
  ['with a basic login', { authorization: 'Basic cGxhdGZvcm06' }, 'PUT', '/function', 'zip', 401],
] as const)('nobody updates the platform %s', async ([, headers, method, path, body, status]) => {
  const response = await fetch(`${platform.updateHost.url}${path}`, { method, headers, ...(body && { body }) })
  expect(response.status).toBe(status)
  expect(await platform.target.current()).toEqual(checkout)
})

test.for([
  ['POST', '/nothing', '{}', 404],
  ['DELETE', '/current', undefined, 404],
  ['POST', '/stage', '{', 400],
  ['POST', '/stage', '{"release":{"version":"../../x"},"functionNames":[]}', 400],
  ['POST', '/ready', '{"release":{"version":"1.0.0"},"functionNames":["../x"]}', 400],
  ['PUT', '/function?version=1.0.0&name=health', 'zip', 400],
  ['PUT', `/function?version=1.0.0&digest=sha256:${'a'.repeat(64)}&name=../../health`, 'zip', 400],
  ['POST', '/unanswered', '{"release":{"version":"1.0.0"},"sinceMs":-1}', 400],
  ['POST', '/shift', '{"release":{"version":"1.0.0"},"share":11}', 400],
] as const)('%s %s is no call: %s', async ([method, path, body, status]) => {
  const headers = { authorization: `Bearer ${platform.updateHost.token}` }
  const response = await fetch(`${platform.updateHost.url}${path}`, { method, headers, ...(body && { body }) })
  expect(response.status).toBe(status)
})

test('a platform that is not there is no final failure', async () => {
  const nowhere = targetOf({ updateHost: { url: 'http://127.0.0.1:1', token: 'x' } })
  await expect(nowhere.current()).rejects.toMatchObject({ name: 'TargetError', isFinal: false })
})
