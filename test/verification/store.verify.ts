import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'vitest'
import type { StoreFaults } from '../support/emulators/store-faults.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Load, startLoad } from './load/load.ts'
import { verifyLoad } from './load/verify.ts'
import { claimAtLeast, claimAtMost, claimNone } from './support/claims.ts'
import { type Faults, storeFaultsOf } from './support/emulators.ts'
import { amount, isShort, print, seed } from './support/run.ts'

const mixedFaults: Partial<StoreFaults> = {
  throttleRate: 0.1,
  lostAcknowledgementRate: 0.02,
  hangRate: 0.01,
  unprocessedRate: 0.1,
  transactionConflictRate: 0.05,
}

const recoveryLimitSeconds = 5
const percent = (part: number, whole: number): number => (whole === 0 ? 100 : (100 * part) / whole)

test('no acknowledged change is lost while the store throttles, loses responses and hangs', async () => {
  await using load = await startLoad({ userCount: amount(6, 2) })
  const faults = await storeFaultsOf(load.platform)
  await runWithFaults('mixed faults', load, faults, mixedFaults, amount(240, 3))
  if (!isShort) await runWithFaults('half of all calls throttled', load, faults, { throttleRate: 0.5 }, 30)
  await throttleEverything(load, faults, amount(15, 1))
  const { stats } = load
  const { lost, duplicates } = await verifyLoad(load)
  claimNone('responses with 500', stats.serverErrors, stats.responses)
  claimNone('responses that violate the contract', stats.violations, stats.responses)
  claimNone('connection errors', stats.connectionErrors)
  claimNone('unexpected rejections', stats.unexpected, stats.calls)
  claimNone('acknowledged changes that were lost', lost)
  claimNone('effects that happened twice', duplicates)
})

async function runWithFaults(
  name: string,
  { stats, begin }: Load,
  faults: Faults<StoreFaults>,
  settings: Partial<StoreFaults>,
  seconds: number,
): Promise<void> {
  const statsBefore = { ...stats, abandoned: stats.abandoned.length }
  await faults.set({ ...settings, seed })
  const stop = begin()
  await delay(seconds * 1000)
  await faults.clear()
  const clearedAtMs = performance.now()
  await delay(amount(10_000, 1000))
  await stop()
  const calls = stats.calls - statsBefore.calls
  const decided = calls - (stats.abandoned.length - statsBefore.abandoned)
  const firstTry = percent(stats.decidedAtFirstTry - statsBefore.decidedAtFirstTry, calls)
  print(`${name}: ${calls} calls, ${firstTry.toPrecision(3)} % decided at the first try`)
  claimAtLeast(`${name}: calls decided after retries`, percent(decided, calls), 99, ' %')
  const recoverySeconds = Math.max(0, stats.lastUndecidedAtMs - clearedAtMs) / 1000
  claimAtMost(`${name}: time to recover`, recoverySeconds, recoveryLimitSeconds, ' s')
}

async function throttleEverything(
  { platform, api }: Load,
  faults: Faults<StoreFaults>,
  seconds: number,
): Promise<void> {
  const admin = await api.admin
  await faults.set({ throttleRate: 1 })
  const endMs = performance.now() + seconds * 1000
  const statuses: number[] = []
  do {
    for (const path of ['/api/v1/clusters', '/api/v1/jobs', '/api/v1/auth/me'])
      statuses.push((await admin.attempt('GET', path)).status)
    statuses.push((await admin.attempt('POST', '/api/v1/sites', { json: { name: 'never' } })).status)
  } while (performance.now() < endMs)
  const isReady = async () => (await fetch(`${platform.url}/health/ready`)).status === 200
  claimNone('all calls throttled: ready', (await isReady()) ? 1 : 0)
  await faults.clear()
  const clearedAtMs = performance.now()
  await waitFor('the platform recovers', async () => {
    return (await isReady()) && (await admin.attempt('GET', '/api/v1/clusters')).status === 200
  })
  const unexpectedStatuses = statuses.filter((status) => status !== 503)
  claimNone('all calls throttled: responses other than 503', unexpectedStatuses, statuses.length)
  const recoverySeconds = (performance.now() - clearedAtMs) / 1000
  claimAtMost('all calls throttled: time to recover', recoverySeconds, recoveryLimitSeconds, ' s')
}
