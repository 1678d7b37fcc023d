import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { handler as jobs } from '../../../functions/jobs.ts'
import { send, type TestRequest } from '../../support/request.ts'
import { eventOf, startHandlers } from '../support/handlers.ts'
import { metered, storeCallsOf } from '../support/meter.ts'
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { inTurn, noise, sameScript, submission } from './submissions.ts'

const sides = {
  platform: 'functions/jobs.ts',
  floor: 'test/bench/floor/submit-batch.ts',
  parse: 'test/bench/floor/parse-body.ts',
} as const
const sideNames = ['platform', 'floor', 'parse'] as const
/** 500 of them are a body of 3.9 MiB. */
const scriptLength = 8000

/** The largest batch that may be submitted, and batches that may not. */
export async function measureLimits(
  { accessToken }: Tenant,
  clusterIds: readonly string[],
  { isQuick }: Effort,
): Promise<Section> {
  const largest = submission(accessToken, inTurn(clusterIds), noise(scriptLength))
  const rounds = isQuick ? 4 : 10
  const cpuMs = await race(largest, rounds)
  const blockMs = await blocksOf(largest, rounds)
  const refused = await refusals(accessToken, clusterIds)
  const [ratio, parses] = [ratios(cpuMs.platform, cpuMs.floor), ratios(cpuMs.platform, cpuMs.parse)]
  const mebibytes = Buffer.byteLength(largest.body ?? '') / 1_048_576
  return {
    title: 'The largest batch',
    columns: [
      'MiB',
      'CPU ms',
      'floor ms',
      'ratio',
      'min',
      'max',
      'JSON.parse ms',
      '× JSON.parse',
      'longest block ms',
      'store calls when refused',
    ],
    rows: [
      [
        mebibytes,
        spread(cpuMs.platform).median,
        spread(cpuMs.floor).median,
        ratio.median,
        ratio.min,
        ratio.max,
        spread(cpuMs.parse).median,
        parses.median,
        spread(blockMs).median,
        refused,
      ],
    ],
    goals: [
      atMost('largest batch: CPU, × floor', ratio.median, 1.3),
      hope(atMost('largest batch: CPU, × JSON.parse', parses.median, 16)),
      hope(atMost('largest batch: longest block, ms', spread(blockMs).median, 40)),
      atMost('batches that are refused: store calls', refused, 0),
    ],
  }
}

async function race(request: TestRequest, rounds: number) {
  await using platform = startHandlers({})
  await using floor = startHandlers({})
  await using parse = startHandlers({})
  const processes = { platform, floor, parse }
  const cpuMs = { platform: [] as number[], floor: [] as number[], parse: [] as number[] }
  for (const round of range(2 + rounds)) {
    for (const side of shuffled(sideNames)) {
      const { cpuMicroseconds } = await processes[side].run(sides[side], [request, request])
      // The first rounds warm up.
      if (round > 1) cpuMs[side].push(cpuMicroseconds / 1000 / 2)
    }
  }
  return cpuMs
}

/** For how long each of several requests kept this process from anything else. */
async function blocksOf(request: TestRequest, rounds: number): Promise<number[]> {
  const event = await eventOf(request)
  const blocks: number[] = []
  for (const round of range(2 + rounds)) {
    const histogram = monitorEventLoopDelay({ resolution: 1 })
    histogram.enable()
    await delay(20)
    const { statusCode } = await jobs(event)
    await delay(20)
    histogram.disable()
    if (statusCode !== 202) throw new Error(`The largest batch was answered ${statusCode}.`)
    if (round > 1) blocks.push(histogram.max / 1e6)
  }
  return blocks
}

/** The store calls of batches that are refused. */
async function refusals(accessToken: string, clusterIds: readonly string[]): Promise<number> {
  const all = inTurn(clusterIds)
  const tooMany = submission(accessToken, [...all, all[0] ?? ''], sameScript)
  const oneBad = submission(accessToken, all, (index) => (index === all.length - 1 ? 1 : sameScript()))
  let calls = 0
  for (const request of [tooMany, oneBad]) {
    const { result, usage } = await metered(() => send(jobs, request))
    if (result.status !== 400) throw new Error(`A bad batch was answered ${result.status}.`)
    calls += storeCallsOf(usage)
  }
  return calls
}
