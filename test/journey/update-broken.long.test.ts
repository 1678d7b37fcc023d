import { generateKeyPair } from '@platform/oci/signature/key'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { until } from '../conformance/support/until.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { PlatformProcess } from '../support/platform.ts'
import {
  builtFunctions,
  failingForUsers,
  failingHalfTheTime,
  hangingForUsers,
  published,
  pushed,
  throwingForUsers,
} from '../support/releases.ts'
import { Traffic } from '../support/traffic.ts'

/** Releases that a platform must not be left with: it refuses them, or goes back by itself. */

const updates = '/api/v1/platform/updates'

let platform: PlatformProcess
let api: Platform
let admin: Client
let serving: string

beforeAll(async () => {
  platform = await PlatformProcess.start({
    PLAT_UPDATE_BAKE_SECONDS: '3',
    PLAT_LOG_LEVEL: 'error',
  })
  api = await platform.setUp()
  admin = await api.admin
  serving = (await check()).currentVersion
})
afterAll(() => platform[Symbol.asyncDispose]())

const check = async () => answered(await admin.get(`${updates}/check`), 200)
const apply = (targetVersion: string) => admin.put(`${updates}/apply`, { action: 'apply', targetVersion })

/** Code that no update gets as far as to run. */
const someCode = new Map([['meta', zipOf({ 'index.mjs': Buffer.from('export const handler = () => {}') })]])

test('a release that is unsigned, forged, too new, older or under another name is refused, and the reason is told', async () => {
  await pushed(platform, { version: '8.0.1' }, someCode)
  await published(platform, { version: '8.0.2' }, someCode, generateKeyPair().privateKeyPem)
  await published(platform, { version: '8.0.3', minFrom: '8.0.0' }, someCode)
  await published(platform, { version: '0.0.1' }, someCode)
  await pushed(platform, { version: '0.0.1' }, someCode, '8.0.4')
  const reasons = {
    '8.0.1': /No signature of sha256:/,
    '8.0.2': /signed with no trusted key/,
    '8.0.3': /can be applied from version 8\.0\.0 on/,
    '8.0.4': /is release 0\.0\.1 under another tag/,
  }
  for (const [version, reason] of [
    ...Object.entries(reasons),
    ['0.0.1', /not newer than/],
    ['7.7.7', /no such/],
  ] as const) {
    expect(answered(await apply(version), 422, 'version_not_available').message, version).toMatch(reason)
  }
  const { latestVersion, updateAvailable, refused } = await check()
  expect([latestVersion, updateAvailable]).toEqual([serving, false])
  const expected = Object.entries(reasons).toReversed()
  expect(refused).toEqual(expected.map(([version, reason]) => ({ version, reason: expect.stringMatching(reason) })))
})

/** Applies a version while clients call. No request fails once its job is over; answers that, and how many did before. */
async function applied(version: string): Promise<{ job: any; failed: number }> {
  await using traffic = await Traffic.start(api, 10)
  await traffic.more(50)
  const { jobId } = answered(await apply(version), 202)
  const job = await until(
    'the update is over',
    async () => {
      // The release may fail at this, too.
      const { status, body } = await admin.get(`/api/v1/jobs/${jobId}`)
      return status === 200 && body.completedAt !== undefined && body
    },
    200,
  )
  await traffic.settled()
  const failed = traffic.failures.length
  traffic.failures = []
  await traffic.more(200)
  expect(traffic.failures).toEqual([])
  return { job, failed }
}

const stepsOf = ({ steps }: any): string[] => steps.map(({ name, status }: any) => `${name} ${status}`)

test('a release that answers 500 half the time is found out before anybody meets it', async () => {
  await published(platform, { version: '9.0.1' }, await builtFunctions('9.0.1', failingHalfTheTime))
  const { job, failed } = await applied('9.0.1')
  expect(job).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
  expect(job.result.output).toMatch(/^Function \S+ of version 9\.0\.1 answers 500 to GET .*\. Version \S+ serves\.$/)
  expect(stepsOf(job)).toContain('smoke Failed')
  expect(failed).toBe(0)
  expect((await check()).currentVersion).toBe(serving)
})

const allWays = [
  ['fails for people alone', '9.0.2', failingForUsers],
  ['throws at people before any code that counts failures', '9.0.3', throwingForUsers],
  ['never answers people', '9.0.4', hangingForUsers],
] as const

test.for(allWays)(
  'a release that %s is taken back by what they meet, and nobody meets it again',
  async ([, version, change]) => {
    await published(platform, { version }, await builtFunctions(version, change))
    const { job, failed } = await applied(version)
    expect(job).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
    // On a machine that is slow, too few have met it at 10 %.
    expect(job.result.output).toMatch(
      /^Version 9\.0\.\d failed \d+ times in \d+ s at [15]0 %, version \S+ \d+ times in the same time\. Version \S+ serves\.$/,
    )
    expect(job.result.output).toContain(`Version ${version} failed`)
    expect(stepsOf(job).join()).toMatch(/shift-[15]0 Failed/)
    expect(failed).toBeGreaterThan(0)
    expect(await check()).toMatchObject({ currentVersion: serving, latestVersion: version })
    await until('the administrator is told', async () => {
      const { items } = answered(await admin.get('/api/v1/notifications'), 200)
      return items.some(
        ({ type, body }: any) => type === 'UpdateFailed' && body.startsWith(`Version ${version} failed`),
      )
    })
    console.log(`${failed} requests met the broken release.`)
  },
)
