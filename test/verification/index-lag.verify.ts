import { expect, test } from 'vitest'
import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'
import { seededRandom } from '../support/random.ts'
import { storeFaultsOf } from './support/emulators.ts'
import { runJourneys } from './support/journeys.ts'
import { isShort, seed } from './support/run.ts'

const maxLagMs = 3000
const changeIntervalMs = 700

const shortSelection = ['users', 'clusters']

async function runWithLag(chooseLagMs?: () => number): Promise<boolean> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`).join()
  const environment = { PLAT_WEBHOOK_ALLOW: receivers }
  await using platform = await PlatformProcess.start(environment, { withFaults: true })
  const faults = await storeFaultsOf(platform)
  await faults.set({ indexLagMs: maxLagMs })
  const timer = chooseLagMs && setInterval(() => void faults.set({ indexLagMs: chooseLagMs() }), changeIntervalMs)
  const isPassed = await runJourneys(platform, { environment, ...(isShort && { only: shortSelection }) })
  clearInterval(timer)
  return isPassed
}

test('the journeys pass while indexes lag by 3 seconds', async () => {
  expect(await runWithLag()).toBe(true)
})

test.skipIf(isShort)('the journeys pass while the lag of indexes changes', async () => {
  const random = seededRandom(seed)
  expect(await runWithLag(() => [0, 500, maxLagMs][Math.floor(random() * 3)] ?? 0)).toBe(true)
})
