import { type TestRequest } from '../../support/request.ts'
import { type HandlerProcess, startHandlers } from '../support/handlers.ts'
import { startNetwork } from '../support/network.ts'
import { range, shuffled, spread } from '../support/statistics.ts'
import type { World } from '../support/world.ts'

/** How long the network takes there and back. */
const roundTripMs = 8
const requestsInRound = 2

const sides = {
  platform: 'functions/jobs.ts',
  floor: 'test/bench/floor/submit-batch.ts',
  serial: 'test/bench/floor/write-batch.ts',
} as const
type Side = keyof typeof sides
const sideNames: readonly Side[] = ['platform', 'floor', 'serial']

/** What a request took, by round, on each side. */
export interface Times {
  wallMs: Record<Side, number[]>
  cpuMs: Record<Side, number[]>
}

/** How a race goes. */
interface Race {
  rounds: number
  warmUps: number
  /** Nobody expands what a race submits: without this the list of open batches grows. */
  reopen: () => Promise<unknown>
}

/** Accepts batches of several kinds on all sides, over a network; answers what each kind took. */
export async function race(
  world: World,
  kinds: readonly { request: () => TestRequest }[],
  { rounds, warmUps, reopen }: Race,
): Promise<Times[]> {
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

async function take(handlers: HandlerProcess, module: string, requests: readonly TestRequest[]) {
  const { wallMs, cpuMicroseconds } = await handlers.run(module, requests)
  return { wallMs: spread(wallMs).median, cpuMs: cpuMicroseconds / 1000 / requests.length }
}
