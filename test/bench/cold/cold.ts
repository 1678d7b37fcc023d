import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { startLambda } from '../../simulator/lambda/start.ts'
import { functionNames } from '../../../packages/local/src/function-files.ts'
import { peerNames } from '../support/peers.ts'
import type { Effort, Section } from '../support/section.ts'
import { range, shuffled } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { buildFloor, buildPeer } from './bare-bundles.ts'
import { buildFunction, type BuiltBundle } from './bundles.ts'
import { type FirstEvent, firstEvents } from './events.ts'
import { clientsOf, floorName, floorProgram } from './floors.ts'
import { coldSection, type Contestant, type Pair } from './report.ts'
import { startOnce } from './start.ts'

const functionsDir = join(import.meta.dirname, '../../../functions')
const assetsDir = join(import.meta.dirname, '../../../dist')

/** Every function as it is deployed: how large it is, and how long a fresh process takes to its first answer. */
export async function measureColdStarts(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const events = await firstEvents(tenant)
  const forgotten = (await functionNames(functionsDir)).filter((name) => !(name in events))
  if (forgotten.length > 0) throw new Error(`No first event for ${forgotten.join(', ')}.`)
  const pairs = await pair(events)
  const lambda = await startLambda()
  try {
    const contestants = new Set(pairs.flatMap(({ entry, floor }) => [floor, entry]))
    await buildAssets(assetsDir, { names: ['portal.pack'] })
    const environment = {
      ...onAws,
      PLAT_ASSETS_DIR: assetsDir,
      PLAT_RELEASE_SOURCE: emptyRepository(),
      AWS_ENDPOINT_URL_LAMBDA: lambda.url,
    }
    await race([...contestants], environment, isQuick ? 2 : 12)
  } finally {
    await lambda.close()
  }
  return coldSection(pairs)
}

/** What functions are told on AWS, beside what the bench tells them all. */
const onAws = {
  PLAT_MODULE_RUNTIME: 'lambda',
  PLAT_MODULE_REGISTRY: 'ecr',
  PLAT_MODULE_REPOSITORY: '123456789012.dkr.ecr.eu-central-1.amazonaws.com/platform',
  PLAT_UPDATE_TARGET: 'lambda-alias',
}

/** Where nobody has published a release: whoever looks for one asks the registry once. */
const emptyRepository = (): string => `${process.env['PLAT_REGISTRY_ALLOW']}/platform/releases`

/** Every function with its floor, and the peers; functions that have the same clients have the same one. */
async function pair(events: Record<string, FirstEvent>): Promise<Pair[]> {
  const floors = new Map<string, Promise<Contestant>>()
  const pairs: Pair[] = []
  for (const [name, event] of Object.entries(events)) {
    const entry = enter(await buildFunction(name), event)
    // What a relay sends has to be answered by who knows relays.
    const handler = name === 'relay' ? 'heartbeat' : 'get-cluster'
    const clients = clientsOf(name, entry.sources)
    const title = floorName(handler, clients)
    const first = events[name === 'relay' ? 'relay' : 'clusters'] ?? event
    const floor = floors.get(title) ?? buildFloor(title, floorProgram(handler, clients)).then((it) => enter(it, first))
    floors.set(title, floor)
    pairs.push({ entry, floor: await floor })
  }
  const peersFloor = pairs.find(({ entry }) => entry.name === 'clusters')?.floor
  if (peersFloor === undefined) throw new Error('Nothing reads clusters.')
  for (const name of peerNames) {
    pairs.push({ entry: enter(await buildPeer(name), peersFloor.event), floor: peersFloor, isPeer: true })
  }
  return pairs.toSorted((one, other) => (one.floor.name < other.floor.name ? -1 : 1))
}

const enter = (bundle: BuiltBundle, event: FirstEvent): Contestant => ({ ...bundle, event, cold: [], cached: [] })

/** Starts them all in random order, round by round; the round before the first fills the caches of files and code. */
async function race(
  contestants: readonly Contestant[],
  environment: Record<string, string>,
  rounds: number,
): Promise<void> {
  const cache = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  try {
    for (const round of range(rounds + 1)) {
      for (const contestant of shuffled(contestants)) {
        const cold = await startOnce(contestant, environment)
        const cached = await startOnce(contestant, { ...environment, NODE_COMPILE_CACHE: cache })
        if (round === 0) continue
        contestant.cold.push(cold)
        contestant.cached.push(cached)
      }
    }
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}
