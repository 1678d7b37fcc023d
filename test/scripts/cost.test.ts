import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { fleetMonth, relayMonth } from '../../scripts/cost/fleets.ts'
import { type Inputs, readInputs } from '../../scripts/cost/inputs.ts'
import { organisationLimits, platformLimits } from '../../scripts/cost/limits.ts'
import { pageOf } from '../../scripts/cost/page.ts'
import { costOf, plus, sharesOf, times } from '../../scripts/cost/quantities.ts'
import { about, exact, money } from '../../scripts/cost/table.ts'
import { idleMonth, quantitiesOf } from '../../scripts/cost/usage.ts'

const inputs = await readInputs()

/** The inputs with one flow of which every number is known. */
function withFlow(name: string, flow: Partial<Inputs['units']['flows'][string]>): Inputs {
  const known = inputs.units.flows[name]
  if (known === undefined) throw new Error(`There is no flow ${name}.`)
  const deployment = {
    ...inputs.units.deployment,
    accessLogBytes: 274,
    hasSystemLog: true,
    logRetentionDays: 304,
    memoryMb: { jobs: 512, 'queue/events': 1024 },
  }
  return {
    ...inputs,
    units: { ...inputs.units, deployment, flows: { ...inputs.units.flows, [name]: { ...known, ...flow } } },
  }
}

const example = withFlow('a single job', {
  per: 2,
  invocations: 3,
  requests: 2,
  meteredRequests: 4,
  answerBytes: 2000,
  readUnits: 10,
  writeUnits: 20,
  messages: 1,
  secretReads: 2,
  logLines: 2,
  logBytes: 300,
  metricLines: 3,
  metricBytes: 900,
  functions: { jobs: { invocations: 2, rounds: 4 }, 'queue/events': { invocations: 1, rounds: 2 } },
})

test('the committed page is what the committed inputs make', async () => {
  const page = await readFile(new URL('../../docs/cost-and-scale.md', import.meta.url), 'utf8')
  expect(page, 'run npm run cost').toBe(pageOf(inputs))
})

test('what a flow takes is what a computation by hand says', () => {
  const { gigabyteSeconds, logGb, keptLogGb, outGb, ...counts } = quantitiesOf(example, 'a single job')
  expect(counts).toEqual({
    gatewayRequests: 2,
    invocations: 1.5,
    writeUnits: 10,
    readUnits: 5,
    // One message was sent, one batch of messages was received and deleted: three requests for two jobs.
    queueRequests: 1.5,
    secretReads: 1,
  })
  // jobs: 2 × 4 ms + 4 × 8 ms = 40 ms at 0.5 GB; queue/events: 4 ms + 2 × 8 ms = 20 ms at 1 GB.
  expect(gigabyteSeconds).toBeCloseTo((0.5 * 0.04 + 1 * 0.02) / 2, 12)
  // Own lines 1,200 + 5 × 26; the gateway's 2 × (274 + 26); Lambda's 3 × (420 + 2 × 26).
  expect(logGb).toBeCloseTo((1330 + 600 + 1416) / 2 / 1e9, 15)
  expect(keptLogGb).toBeCloseTo((logGb ?? 0) * 0.15 * 10, 15)
  expect(outGb).toBeCloseTo(1e-6, 12)
})

test('a cost is the sum of quantities times prices; what is free is taken off of each, never below nothing', () => {
  const quantities = plus({ writeUnits: 2_000_000 }, times({ writeUnits: 500_000, metrics: 6 }, 2))
  expect(quantities).toEqual({ writeUnits: 3_000_000, metrics: 12 })
  expect(costOf(quantities, inputs.prices)).toBeCloseTo(3 * 0.625 + 12 * 0.3, 10)
  expect(costOf(quantities, inputs.prices, true)).toBeCloseTo(3 * 0.625 + 2 * 0.3, 10)
  expect(costOf({ metrics: 4 }, inputs.prices, true)).toBe(0)
  expect(sharesOf(quantities, inputs.prices).map(([service]) => service)).toEqual(['logs and metrics', 'table'])
})

test('other prices make another page, and the quantities stay', () => {
  const { prices } = inputs.prices
  const dearer = { ...inputs.prices, prices: { ...prices, writeUnits: { ...prices.writeUnits, usd: 1.25 } } }
  const written = relayMonth(inputs).writeUnits ?? 0
  expect(costOf(relayMonth(inputs), dearer) - costOf(relayMonth(inputs), inputs.prices)).toBeCloseTo(
    (written * 0.625) / 1e6,
    10,
  )
  expect(pageOf({ ...inputs, prices: dearer })).not.toBe(pageOf(inputs))
})

test('limits come where a computation by hand says', () => {
  const known = withFlow('an hour of an idle relay', {
    requests: 120,
    writeUnits: 180,
    partitions: { 'due DUE#{shard}': 60 },
  })
  const relays = Object.fromEntries(
    platformLimits(known).map(({ name, rates }) => [name, Math.round(rates.relays ?? 0)]),
  )
  expect(relays).toMatchObject({
    'A new table': 4000 / (180 / 3600),
    'The index of what is due': 4 * 1000 * 60,
    "The gateway's own limit": inputs.units.deployment.requestsPerSecond * 30,
    'Keeping the books': 0,
  })
  const jobs = withFlow('a single job', { per: 1, partitions: { 'ORG#{org}#OUTBOX': 12.5 } })
  expect(organisationLimits(jobs).find(({ name }) => name.startsWith('Its outbox'))?.rates.single).toBe(80)
})

test('a fleet costs more than nobody, and what a cluster costs falls as the fleet grows', () => {
  const [small, middle, large] = inputs.assumptions.fleets.map((fleet) => ({
    usd: costOf(fleetMonth(inputs, fleet), inputs.prices),
    ...fleet,
  }))
  if (small === undefined || middle === undefined || large === undefined) throw new Error('There are three fleets.')
  expect(small.usd).toBeGreaterThan(costOf(idleMonth(inputs), inputs.prices))
  expect(small.usd / small.clusters).toBeGreaterThan(middle.usd / middle.clusters)
  expect(middle.usd / middle.clusters).toBeGreaterThanOrEqual(large.usd / large.clusters)
})

test('numbers are written as people read them', () => {
  expect([1234.6, 21.936, 0.2649, 0.02649, 0].map(money)).toEqual(['$1,235', '$21.94', '$0.26', '$0.026', '$0.00'])
  expect([83_333, 71.4, 4.44, 1_000_000].map(about)).toEqual(['83,000', '71', '4.4', '1,000,000'])
  expect([113, 21.324, 2.999, 0.5, 1234.5].map(exact)).toEqual(['113', '21.32', '3', '0.5', '1,234.5'])
})
