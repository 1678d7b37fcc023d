import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { newRelayKey, Relay, requestEnrollment } from '../../conformance/support/relay.ts'
import { seededRandom } from '../../support/random.ts'
import { PlatformProcess } from '../../support/platform.ts'
import { runRelayCommand } from '../../support/relay-command.ts'
import type { Program } from '../../support/program.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { Customer, type Targets } from './customer.ts'
import { GivenUp, PatientClient } from './patient-client.ts'
import { nothingPromised, type Promised } from './promised.ts'
import { newTally, type Tally } from './tally.ts'

/** No limit of requests may hide what the store does. */
const unlimited = Object.fromEntries(
  ['API_PER_MINUTE', 'API_BURST', 'REFRESH_PER_MINUTE', 'ENROLL_PER_MINUTE', 'BATCH_PER_MINUTE']
    .concat(['SIGN_IN_USER_PER_MINUTE', 'SIGN_IN_ADDRESS_PER_MINUTE'])
    .map((name) => [`PLAT_LIMIT_${name}`, '1000000']),
)

/** A real platform under a load of everything that customers do at once. */
export interface MixedLoad extends AsyncDisposable {
  platform: PlatformProcess
  api: Platform
  relay: Program
  targets: Targets
  tally: Tally
  promised: Promised
  /** Lets the customers work; answers what ends that, once each has done everything once and finished what it has begun. */
  begin: () => () => Promise<void>
}

interface Options {
  customers: number
  seed: number
  /** How long a customer rests between two deeds. */
  restMs?: number
  settings?: Record<string, string>
}

/** Starts a platform and all that the load needs of it, and no load yet. */
export async function startMixedLoad({ customers, seed, restMs = 0, settings }: Options): Promise<MixedLoad> {
  await using parts = new AsyncDisposableStack()
  const platform = parts.use(await PlatformProcess.start({ ...unlimited, ...settings }, { withFaults: true }))
  const folder = parts.use(await temporaryFolder())
  const api = await platform.setUp()
  const [working, parked] = [await api.newCluster(), await api.newCluster()]
  const targets = { workingId: working.id, parkedId: parked.id, ledger: join(folder.path, 'ledger') }
  const relay = parts.use(runRelayCommand(working.relayCommand, folder.path))
  const [tally, promised] = [newTally(), nothingPromised()]
  const anonymous = new PatientClient(platform.url, api.contract, tally)
  const all = await Promise.all(Array.from({ length: customers }, () => newCustomer(api, anonymous, targets, promised)))
  const begin = () => {
    const end = new AbortController()
    const working = all.map((customer, index) => work(customer, tally, seed + index, restMs, end.signal))
    return async () => {
      end.abort()
      await Promise.all(working)
    }
  }
  const owned = parts.move()
  const dispose = () => owned.disposeAsync()
  return { platform, api, relay, targets, tally, promised, begin, [Symbol.asyncDispose]: dispose }
}

async function newCustomer(api: Platform, anonymous: PatientClient, targets: Targets, promised: Promised) {
  const [{ tokens }, { enrollmentToken }, key] = [
    await api.newPerson('OrgAdmin'),
    await api.newCluster(),
    newRelayKey(),
  ]
  const enrolled = expectStatus(await requestEnrollment(anonymous, enrollmentToken, key), 201)
  return new Customer(anonymous, tokens, new Relay(anonymous, key, enrolled), targets, promised)
}

/** Everything once, and then one deed after another until it is enough; the seed decides in which order. */
async function work(
  { deeds }: Customer,
  tally: Tally,
  seed: number,
  restMs: number,
  enough: AbortSignal,
): Promise<void> {
  const random = seededRandom(seed)
  const first = deeds.map((deed) => ({ deed, rank: random() })).toSorted((a, b) => a.rank - b.rank)
  for (let count = 0; count < first.length || !enough.aborted; count++) {
    const deed = first[count]?.deed ?? deeds[Math.floor(random() * deeds.length)]
    try {
      await deed?.()
    } catch (error) {
      if (!(error instanceof GivenUp)) tally.surprises.push(error instanceof Error ? error.message : String(error))
    }
    if (restMs > 0) await delay(restMs * random())
  }
}
