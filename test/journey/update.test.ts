import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { isLong, rounds } from '../support/long.ts'
import { PlatformProcess } from '../support/platform.ts'
import { asItIs, builtFunctions, published } from '../support/releases.ts'
import { Traffic } from '../support/traffic.ts'

/** A release from its making to the way back, on a platform that people work with. One test follows another. */

const updates = '/api/v1/platform/updates'

let platform: PlatformProcess
let api: Platform
let admin: Client

beforeAll(async () => {
  platform = await PlatformProcess.start({ PLAT_UPDATE_BAKE_SECONDS: '1' })
  api = await platform.setUp()
  admin = await api.admin
})
afterAll(() => platform[Symbol.asyncDispose]())

const check = async () => expectStatus(await admin.get(`${updates}/check`), 200)
const told = async (type: string): Promise<any[]> =>
  expectStatus(await admin.get('/api/v1/notifications'), 200).items.filter((item: any) => item.type === type)
const apply = (body: object) => admin.put(`${updates}/apply`, body)

const releaseNotesUrl = 'https://example.com/9.1.0'

/** Releases what is checked out with the command, which builds all of it. */
async function releasedByCommand(): Promise<void> {
  const line = `npm run -s release -- --version 9.1.0 --notes-url ${releaseNotesUrl}`
  expect(await platform.command(line)).toMatch(/platform\/releases:9\.1\.0 was published: sha256:[0-9a-f]{64}, after /)
  expect(await platform.command(line)).toMatch(/9\.1\.0 was already published: sha256:/)
  await expect(platform.command(`SOURCE_DATE_EPOCH=0 ${line}`)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/9\.1\.0 already exists with other content/),
  })
}

/** The same release of what other tests have built as well. */
const releasedAsBuilt = async () =>
  published(platform, { version: '9.1.0', releaseNotesUrl }, await builtFunctions('9.1.0', asItIs))

// The command builds all functions, three times.
test(`a release${isLong ? ' that npm run release has made' : ''} is found, and administrators are told of it once`, async () => {
  const before = await check()
  expect(before).toMatchObject({ latestVersion: before.currentVersion, updateAvailable: false, refused: [] })
  await (isLong ? releasedByCommand() : releasedAsBuilt())
  expect(await check()).toMatchObject({
    latestVersion: '9.1.0',
    updateAvailable: true,
    releaseNotesUrl,
    refused: [],
  })
  await check()
  await waitFor('the administrator is told', async () => (await told('UpdateAvailable')).length > 0)
  expect(await told('UpdateAvailable')).toHaveLength(1)
}, 600_000)

test('it is applied and taken back while clients call, and not one request fails', async () => {
  const { currentVersion } = await check()
  const relay = await api.newRelay()
  const { jobId, leaseId } = await api.running(relay)
  expectStatus(await apply({ action: 'apply', targetVersion: '9.1.0' }), 409, 'active_jobs')

  await using traffic = await Traffic.start(api, rounds(4, 10))
  await traffic.more(rounds(40, 100))
  const accepted = expectStatus(await apply({ action: 'apply', targetVersion: '9.1.0', force: true }), 202)
  expect(accepted).toMatchObject({ action: 'apply', targetVersion: '9.1.0', status: 'InProgress' })
  expectStatus(await apply({ action: 'apply', targetVersion: '9.1.0', force: true }), 409, 'update_in_progress')
  expectStatus(await apply({ action: 'rollback', force: true }), 409, 'update_in_progress')
  expect((await check()).jobId).toBe(accepted.jobId)
  const updated = await over(api, accepted)
  expect(updated, JSON.stringify(updated)).toMatchObject({ status: 'Completed', type: 'PlatformUpdate' })
  expect(await check()).toMatchObject({ currentVersion: '9.1.0', previousVersion: currentVersion })
  await traffic.more(rounds(40, 100))
  expectStatus(await apply({ action: 'apply', targetVersion: '9.1.0', force: true }), 422, 'version_not_available')

  const taken = await over(api, expectStatus(await apply({ action: 'rollback', force: true }), 202))
  expect(taken, JSON.stringify(taken)).toMatchObject({ status: 'Completed', type: 'PlatformRollback' })
  expect((await check()).currentVersion).toBe(currentVersion)
  await traffic.more(rounds(40, 100))
  expect(traffic.failures).toEqual([])
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expect((await api.job(jobId)).status).toBe('Completed')
  console.log(`${traffic.answers} requests were answered through an update and the way back.`)
}, 180_000)

// The tests of the runner have a release serve at every start.
test.runIf(isLong)('what was applied serves again after a restart, and so does the way back', async () => {
  const { currentVersion } = await check()
  await over(api, expectStatus(await apply({ action: 'apply', targetVersion: '9.1.0' }), 202))
  await platform.stop()
  await platform.restart()
  expect(await check()).toMatchObject({ currentVersion: '9.1.0', previousVersion: currentVersion })
  await over(api, expectStatus(await apply({ action: 'rollback' }), 202))
  await platform.kill()
  await platform.restart()
  expect((await check()).currentVersion).toBe(currentVersion)
})
