import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { scheduled } from '@platform/http/schedule'
import { supervise } from '@platform/worker/modules/supervise'
import type { ModuleRuntime } from '@platform/worker/runtimes/port'
import { handler as relays } from '../../../functions/relay.ts'
import { handler as catalog } from '../../../functions/schedule/catalog.ts'
import { handler as sweep } from '../../../functions/schedule/sweep.ts'
import { handler as updates } from '../../../functions/schedule/updates.ts'
import { newCaller, enrolledCluster } from '../../support/fixtures.ts'
import { beat, type BenchRelay } from '../support/relay.ts'
import { range } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { invoke, newFlow, request } from './call.ts'
import { type Flows, measure, newRelay } from './flows.ts'
import { settle } from './messages.ts'

const beatMs = config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
const silenceMs = 600_000
/** Sweeps until nothing is left to be tidied up. */
const settlingSweeps = 8
const [silent, beating, beatsOfEach] = [20, 50, 4]

/** Nothing runs on it. */
const nobody = async (): Promise<never> => {
  throw new Error('No module is installed.')
}
const emptyRuntime: ModuleRuntime = { deploy: nobody, request: nobody, remove: nobody, list: async () => [] }
const heartbeat = scheduled('heartbeat', () => supervise(async () => emptyRuntime))

async function beatSome(relay: BenchRelay): Promise<void> {
  for (const _ of range(beatsOfEach)) await request(newFlow(), 'relay', relays, await beat(relay))
}

const run = (name: string, work: () => Promise<unknown>) => measure((flow) => invoke(flow, `schedule/${name}`, work))

/** A sweep while clusters beat as they should: none of them is due. */
async function sweepOverBeating({ accessToken }: Tenant): Promise<Flows> {
  for (const _ of range(beating)) {
    const { relay } = await newRelay(newFlow(), accessToken)
    await beatSome(relay)
  }
  shiftClock(beatMs)
  const swept = await run('sweep', sweep)
  shiftClock(-beatMs)
  return { [`schedule/sweep, ${beating} clusters beat`]: swept }
}

/** What clocks begin, on a platform where nothing is to be done; and a sweep that finds silent clusters. */
export async function scheduledFlows(tenant: Tenant): Promise<Flows> {
  const later = async () => {
    shiftClock(silenceMs)
    return run('sweep', sweep)
  }
  for (const _ of range(settlingSweeps)) {
    await later()
    await settle(newFlow())
  }
  const idle = await later()
  const caller = await newCaller()
  await Promise.all(range(silent).map(() => enrolledCluster(caller)))
  await settle(newFlow())
  const { flow } = await later()
  await settle(flow)
  shiftClock(-(settlingSweeps + 2) * silenceMs)
  await run('catalog', catalog)
  return {
    'schedule/sweep': idle,
    'a cluster that falls silent': { flow, per: silent },
    ...(await sweepOverBeating(tenant)),
    'schedule/heartbeat': await run('heartbeat', heartbeat),
    'schedule/catalog': await run('catalog', catalog),
    'schedule/updates': await run('updates', updates),
  }
}
