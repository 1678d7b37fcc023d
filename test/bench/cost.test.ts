import { expect, test } from 'vitest'
import {
  batchJob,
  costByService,
  costOf,
  fleetMonth,
  fleets,
  idleMonth,
  type Inputs,
  plus,
  quantitiesOf,
  readInputs,
  relayMonth,
  multiply,
  singleJob,
} from './cost/model.ts'

const inputs = await readInputs()

test('computes the quantities of a flow', () => {
  const deployment = {
    ...inputs.units.deployment,
    accessLogBytes: 274,
    hasMetrics: true,
    hasSystemLog: true,
    logRetentionDays: 304,
    memoryMb: { jobs: 512, 'queue/events': 1024 },
  }
  const flow = {
    per: 2,
    invocations: 3,
    requests: 2,
    meteredRequests: 4,
    responseBytes: 2000,
    storeCalls: 9,
    rounds: 6,
    readUnits: 10,
    writeUnits: 20,
    messages: 1,
    secretReads: 2,
    logLines: 2,
    logBytes: 300,
    metricLines: 3,
    metricBytes: 900,
    functions: { jobs: { invocations: 2, rounds: 4 }, 'queue/events': { invocations: 1, rounds: 2 } },
    metrics: [],
  }
  const example: Inputs = { ...inputs, units: { ...inputs.units, deployment, flows: { example: flow } } }
  const { gigabyteSeconds, logGb, keptLogGb, outGb, ...counts } = quantitiesOf(example, 'example')
  // One message is sent; one batch of messages is received and deleted.
  const expected = { gatewayRequests: 2, invocations: 1.5, writeUnits: 10, readUnits: 5, queueRequests: 1.5 }
  expect(counts).toEqual({ ...expected, secretReads: 1 })
  // jobs: 2 × 4 ms + 4 × 8 ms = 40 ms at 0.5 GB; queue/events: 4 ms + 2 × 8 ms = 20 ms at 1 GB.
  expect(gigabyteSeconds).toBeCloseTo((0.5 * 0.04 + 1 * 0.02) / 2, 12)
  // Functions 1,200 + 5 × 26; gateway 2 × (274 + 26); Lambda 3 × (420 + 2 × 26).
  expect(logGb).toBeCloseTo((1330 + 600 + 1416) / 2 / 1e9, 15)
  expect(keptLogGb).toBeCloseTo((logGb ?? 0) * 0.15 * 10, 15)
  expect(outGb).toBeCloseTo(1e-6, 12)
})

test('sums quantities times prices by service', () => {
  const quantities = plus({ writeUnits: 2_000_000 }, multiply({ writeUnits: 500_000, metrics: 6 }, 2))
  expect(costOf(quantities, inputs)).toBeCloseTo(3 * 0.625 + 12 * 0.3, 10)
  expect([...costByService(quantities, inputs).keys()]).toEqual(['logs and metrics', 'table'])
})

test('the cost per cluster falls as a fleet grows', () => {
  const costsPerCluster = fleets.map((fleet) => costOf(fleetMonth(inputs, fleet), inputs) / fleet.clusters)
  expect(costsPerCluster).toEqual(costsPerCluster.toSorted((a, b) => b - a))
})

test.each([
  ['a million single jobs', multiply(quantitiesOf(inputs, singleJob), 1_000_000), 35],
  ['a million jobs of batches', multiply(quantitiesOf(inputs, batchJob), 1_000_000), 15],
  ['a month of an idle relay', relayMonth(inputs), 0.04],
  ['a month of an idle deployment', idleMonth(inputs), 6],
])('the cost of %s is within the goal', (_, quantities, goal) => {
  expect(costOf(quantities, inputs)).toBeLessThanOrEqual(goal)
})
