import { beforeAll, expect, test, vi } from 'vitest'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { cancelConfirmMs } from '@platform/core/jobs/cancel'
import { claim, nextCheckWhileRunning } from '@platform/core/jobs/claim'
import { parseJob } from '@platform/core/jobs/record'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { waitingJob } from '../support/jobs.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_HEARTBEAT_INTERVAL_SECONDS: '900' }))

beforeAll(bootstrapPlatform)

test('where relays beat seldom, a quiet job has its lease for as long as its relay is Healthy', async () => {
  const { caller, enrolled, jobId } = await waitingJob({ timeoutSeconds: 7200 })
  const { leaseExpiresAt } = await claim(enrolled.request(), jobId, undefined)
  const healthyMs = (2 * 900 + 20) * 1000
  expect(Date.parse(leaseExpiresAt) - now()).toBeGreaterThan(healthyMs - 60_000)
  const row = parseJob((await get(keys.job(caller.organisationId, jobId))) ?? {})
  expect(nextCheckWhileRunning(row, cancelConfirmMs)).toBe(row.leaseRenewedAtMs + healthyMs)
})
