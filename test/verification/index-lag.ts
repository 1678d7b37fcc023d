import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runJourneys } from './journeys.ts'
import { all, type Effort, type Figure, type Part } from './part.ts'
import { seededRandom } from '../support/random.ts'
import { storeFaultsOf } from './support/emulators.ts'

/** Areas that are over in a moment, and whose journeys read what they have just written. */
const few = ['users', 'sites', 'clusters']

const lags = [0, 500, 3000]
const changeMs = 700

/** Journeys of another administrator than the documented one are set up by the suite itself. */
async function journeysWith(effort: Effort, only: readonly string[] | undefined, isRandom: boolean): Promise<Figure> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`).join()
  await using platform = await PlatformProcess.start({ PLAT_OUTBOUND_ALLOW: receivers }, { withFaults: true })
  const faults = await storeFaultsOf(platform)
  await faults.set({ indexLagMs: 3000 })
  const random = seededRandom(effort.seed)
  const change = (): void => void faults.set({ indexLagMs: lags[Math.floor(random() * lags.length)] ?? 0 })
  const timer = isRandom ? setInterval(change, changeMs) : undefined
  const environment = { PLAT_OUTBOUND_ALLOW: receivers }
  const { passed, total } = await runJourneys(platform, { ...(only && { only }), environment, say: effort.say })
  clearInterval(timer)
  const how = isRandom ? `0, 0.5 or 3 s behind, changing every ${changeMs} ms` : '3 s behind'
  return all(`journeys that pass with indexes ${how}`, passed, total)
}

export const part: Part = {
  title: 'Indexes that lag behind',
  how:
    'The journeys of the conformance suite, unchanged, against a store whose indexes show every write only seconds later: lists may ' +
    'follow by a moment, but nothing is refused, allowed or lost by what an index says.',
  run: async (effort) =>
    effort.isShort
      ? [await journeysWith(effort, few, false)]
      : [await journeysWith(effort, undefined, false), await journeysWith(effort, undefined, true)],
}
