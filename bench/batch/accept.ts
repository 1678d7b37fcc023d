import * as keys from '@platform/core/db/keys'
import { remove, transact } from '@platform/core/db/table'
import { handler as jobs } from '../../functions/jobs.ts'
import { send, type Sent } from '../../test/support/event.ts'
import { type HandlerProcess, startHandlers } from '../support/handlers.ts'
import { metered, type Usage } from '../support/meter.ts'
import { startNetwork } from '../support/network.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { accepted, type Tenant } from '../support/tenant.ts'
import type { World } from '../support/world.ts'
import { inTurn, jobsInBatch, noise, sameScript, submission } from './submissions.ts'

const roundTripMs = 8
const requestsInRound = 2

/** A kind of batch, and the write units that it may take for each of its jobs. */
interface Kind {
  name: string
  request(): Sent
  unitsOfJob: number
}

const sides = {
  platform: 'functions/jobs.ts',
  floor: 'bench/floor/submit-batch.ts',
  serial: 'bench/floor/write-batch.ts',
} as const
type Side = keyof typeof sides
const sideNames: readonly Side[] = ['platform', 'floor', 'serial']

/** What a request took, by round, on each side. */
interface Times {
  wallMs: Record<Side, number[]>
  cpuMs: Record<Side, number[]>
}

/** What accepting 500 jobs at once costs, and how long it takes over a network. */
export async function measureAccept(
  world: World,
  { accessToken, organisationId }: Tenant,
  clusterIds: readonly string[],
  { isQuick }: Effort,
): Promise<Section> {
  const kinds = kindsOf(accessToken, clusterIds)
  const reopen = () => transact([remove(keys.openBatches(organisationId))])
  const usages: Usage[] = []
  for (const { request } of kinds) {
    accepted(await send(jobs, request()))
    await reopen()
    const { result, usage } = await metered(() => send(jobs, request()))
    accepted(result)
    usages.push(usage)
  }
  const [rounds, warmUps] = isQuick ? [4, 2] : [10, 6]
  const times = await race(world, kinds, { rounds, warmUps, reopen })
  return section(kinds, usages, times, rounds)
}

const kindsOf = (accessToken: string, clusterIds: readonly string[]): Kind[] => {
  const one = inTurn(clusterIds.slice(0, 1))
  const all = inTurn(clusterIds)
  return [
    { name: 'one script, one cluster', request: () => submission(accessToken, one, sameScript), unitsOfJob: 0.15 },
    { name: 'one script, 500 clusters', request: () => submission(accessToken, all, sameScript), unitsOfJob: 0.15 },
    { name: '500 scripts of noise', request: () => submission(accessToken, all, noise(1024)), unitsOfJob: 1.5 },
  ]
}

interface Race {
  rounds: number
  warmUps: number
  /** Nobody expands what a race submits: without this the list of open batches grows. */
  reopen(): Promise<unknown>
}

async function race(world: World, kinds: readonly Kind[], { rounds, warmUps, reopen }: Race): Promise<Times[]> {
  await using network = await startNetwork(world.environment, roundTripMs)
  await using platform = startHandlers(network.environment)
  await using floor = startHandlers(network.environment)
  await using serial = startHandlers(network.environment)
  const processes = { platform, floor, serial }
  const results = kinds.map((kind) => ({ kind, times: newTimes() }))
  for (const round of range(warmUps + rounds)) {
    for (const { kind, times } of shuffled(results)) {
      const requests = range(requestsInRound).map(kind.request)
      for (const side of shuffled(sideNames)) {
        const taken = await take(processes[side], sides[side], requests)
        if (round < warmUps) continue
        times.wallMs[side].push(taken.wallMs)
        times.cpuMs[side].push(taken.cpuMs)
      }
    }
    await reopen()
  }
  return results.map(({ times }) => times)
}

const newTimes = (): Times => ({
  wallMs: { platform: [], floor: [], serial: [] },
  cpuMs: { platform: [], floor: [], serial: [] },
})

async function take(handlers: HandlerProcess, module: string, requests: readonly Sent[]) {
  const { wallMs, cpuMicroseconds } = await handlers.run(module, requests)
  return { wallMs: spread(wallMs).median, cpuMs: cpuMicroseconds / 1000 / requests.length }
}

const callsOf = ({ calls }: Usage): number => Object.values(calls).reduce((sum, count) => sum + count, 0)

function section(kinds: readonly Kind[], usages: readonly Usage[], times: readonly Times[], rounds: number): Section {
  const results = kinds.flatMap((kind, index) => {
    const [usage, taken] = [usages[index], times[index]]
    if (usage === undefined || taken === undefined) return []
    const { wallMs, cpuMs } = taken
    const [wall, cpu] = [ratios(wallMs.platform, wallMs.serial), ratios(cpuMs.platform, cpuMs.floor)]
    return [{ kind, usage, wallMs, cpuMs, wall, cpu, units: usage.writeUnits / jobsInBatch }]
  })
  return {
    title: `Accepting a batch of ${jobsInBatch} jobs`,
    notes: [
      `Scripts of 1 KB; noise is lines of random letters and digits. Calls are those of the store and the one message. Times are over a network of ${roundTripMs} ms there and back, ${rounds} rounds in random order. "Serial" is a bare handler that does what comes to mind first, one call after another: it looks the clusters up and writes an item for each job, 25 to a call. "Floor" is one that makes by hand the calls that the platform makes.`,
    ],
    columns: [
      ...['batch', 'calls', 'rounds', 'read units', 'write units', 'a job'],
      ...['ms', 'serial ms', 'ratio', 'min', 'max', 'CPU ms', 'floor CPU ms', 'CPU ratio', 'min', 'max'],
    ],
    rows: results.map(({ kind, usage, wallMs, cpuMs, wall, cpu, units }) => [
      ...[kind.name, callsOf(usage), usage.rounds, usage.readUnits, usage.writeUnits, units],
      ...[spread(wallMs.platform).median, spread(wallMs.serial).median, wall.median, wall.min, wall.max],
      ...[spread(cpuMs.platform).median, spread(cpuMs.floor).median, cpu.median, cpu.min, cpu.max],
    ]),
    goals: results.flatMap(({ kind: { name, unitsOfJob }, usage, wall, units }) => [
      atMost(`batch, ${name}: calls`, callsOf(usage), 7),
      atMost(`batch, ${name}: rounds`, usage.rounds, 3),
      atMost(`batch, ${name}: write units of a job`, units, unitsOfJob),
      atMost(`batch, ${name}: time, × serial`, wall.median, 0.15),
    ]),
  }
}
