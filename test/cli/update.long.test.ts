import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plat } from '../support/plat.ts'
import { builtFunctions, publishRelease } from '../support/releases.ts'
import { startProxy } from './support/proxy.ts'
import { logIn, startEnvironment, type Environment } from './support/environment.ts'

/** The tests run in order, on one platform. */

let environment: Environment
let plat: Plat
let currentVersion: string

beforeAll(async () => {
  environment = await startEnvironment()
  plat = environment.plat
  currentVersion = (await plat.json(['update', 'check'])).currentVersion
})
afterAll(() => environment[Symbol.asyncDispose]())

test('does nothing without a newer release, and rejects a rollback without a previous version', async () => {
  const check = await plat.run(['update', 'check'])
  expect(check.out).toMatch(
    new RegExp(`^currentVersion +${currentVersion}\nlatestVersion +${currentVersion}\nupdateAvailable +false\n`),
  )
  const repeatedApply = await plat.run(['update', 'apply'])
  expect([repeatedApply.exitCode, repeatedApply.out]).toEqual([0, ''])
  expect(repeatedApply.err).toBe(`${currentVersion} is up to date.\n`)
  expect(await plat.json(['update', 'apply'])).toMatchObject({ updateAvailable: false })
  const rollback = await plat.run(['update', 'rollback', '--yes'])
  expect([rollback.exitCode, rollback.err]).toEqual([1, expect.stringContaining('(no_previous_version)')])
  const unknownVersionApply = await plat.run(['update', 'apply', '9.9.9', '--yes'])
  expect([unknownVersionApply.exitCode, unknownVersionApply.err]).toEqual([
    1,
    expect.stringContaining('(version_not_available)'),
  ])
})

test('finds, applies and rolls back a release and prints each step', async () => {
  await publishRelease(environment.platform, { version: '9.1.0' }, await builtFunctions('9.1.0', 'reports version'))
  const check = await plat.run(['update', 'check'])
  expect(check.out).toMatch(/^latestVersion +9\.1\.0$/m)
  expect(check.err).toBe('Next: plat update apply 9.1.0\n')

  const unconfirmedApply = await plat.run(['update', 'apply'])
  expect([unconfirmedApply.exitCode, unconfirmedApply.err]).toEqual([
    2,
    `Update the platform from ${currentVersion} to 9.1.0? Use --yes to confirm.\n`,
  ])
  const applyResult = await plat.run(['update', 'apply', '--yes'])
  expect(applyResult).toMatchObject({ exitCode: 0, out: 'PlatformUpdate Completed: Version 9.1.0 serves.\n' })
  const steps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit']
  expect(applyResult.err).toBe(steps.map((step) => `${step}: Completed\n`).join(''))

  const acceptedRollback = await plat.json(['update', 'rollback', '--yes', '--no-wait'])
  expect(acceptedRollback).toMatchObject({ action: 'rollback', targetVersion: currentVersion, status: 'InProgress' })
  expect((await plat.run(['job', 'wait', acceptedRollback.jobId])).exitCode).toBe(0)
  expect(await plat.json(['update', 'check'])).toMatchObject({ currentVersion })
})

test('follows an update if its first response is lost', async () => {
  await using proxy = await startProxy(environment.platform.url)
  const proxiedPlat = plat.with({ PLAT_SERVER: proxy.url, XDG_CONFIG_HOME: join(environment.folder, 'proxied') })
  await logIn(proxiedPlat)
  proxy.inject('PUT /api/v1/platform/updates/apply', 'drop response')
  const applyResult = await proxiedPlat.run(['update', 'apply', '9.1.0', '--yes'])
  expect(applyResult).toMatchObject({ exitCode: 0, out: 'PlatformUpdate Completed: Version 9.1.0 serves.\n' })
  expect(applyResult.err).toMatch(/^Already running: job_\w+\.$/m)
  expect(proxy.requests.filter((line) => line.startsWith('PUT '))).toHaveLength(2)

  // On most machines the rollback has ended before the retry; the retry must not roll back again.
  const laterResponse = { status: 503, headers: { 'retry-after': '8' }, body: '{"error":"unavailable"}' }
  proxy.inject('PUT /api/v1/platform/updates/apply', 'drop response', laterResponse)
  const rollback = await proxiedPlat.run(['update', 'rollback', '--yes'])
  expect([rollback.exitCode, rollback.err]).toEqual([
    0,
    expect.stringMatching(/(^Already running: |is already active\.$)/m),
  ])
  expect(await plat.json(['update', 'check'])).toMatchObject({ currentVersion })
})
