import { now } from '@platform/core/clock'
import { cancelConfirmMs } from '@platform/core/jobs/cancel'
import { claim, nextCheckWhileRunning } from '@platform/core/jobs/claim'
import { expect, test, vi } from 'vitest'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { waitingJob } from '../support/jobs.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_HEARTBEAT_INTERVAL_SECONDS: '900' }))

test('a lease lasts at least until a silent relay makes its cluster Degraded', async () => {
  await bootstrapPlatform()
  const { enrolled, jobId, record } = await waitingJob({ timeoutSeconds: 7200 })
  const { leaseExpiresAt } = await claim(enrolled.request(), jobId, undefined)
  const degradedMs = (2 * 900 + 20) * 1000
  expect(Date.parse(leaseExpiresAt) - now()).toBeGreaterThan(degradedMs - 60_000)
  const job = await record()
  expect(nextCheckWhileRunning(job, cancelConfirmMs)).toBe(job.leaseRenewedAtMs + degradedMs)
})
