/** `npm run cost`: prints what AWS charges, from measured units and prices. `--measure` measures the units again. */
import { parseArgs } from 'node:util'
import { printTable } from '../support/table.ts'
import {
  batchJob,
  costByService,
  costOf,
  fleetMonth,
  flowOf,
  idleMonth,
  type Inputs,
  plus,
  type Quantities,
  quantitiesOf,
  readInputs,
  relayMonth,
  singleJob,
  times,
} from './model.ts'

const million = 1_000_000
const { values } = parseArgs({ options: { measure: { type: 'boolean' }, prices: { type: 'string' } } })

const dollars = (usd: number): string => (usd >= 100 ? `$${Math.round(usd)}` : `$${usd.toFixed(2)}`)

/** Services that make up at least 3 % of a cost. */
function shares(quantities: Quantities, inputs: Inputs): string {
  const total = costOf(quantities, inputs)
  return [...costByService(quantities, inputs)]
    .filter(([, usd]) => usd / total >= 0.03)
    .map(([service, usd]) => `${service} ${Math.round((100 * usd) / total)} %`)
    .join(', ')
}

function printCost(inputs: Inputs): void {
  const perMillion = (name: string, quantities: Quantities, each: (key: 'storeCalls' | 'writeUnits') => number) => [
    name,
    dollars(costOf(times(quantities, million), inputs)),
    each('storeCalls'),
    each('writeUnits'),
    shares(quantities, inputs),
  ]
  const flows = Object.keys(inputs.units.flows).filter((name) => !/^(schedule\/|an hour)/.test(name))
  printTable(
    `A million of each (${inputs.prices.region}, units measured on ${inputs.units.measuredAt})`,
    ['operation', 'cost', 'store calls', 'write units', 'shares'],
    flows.map((name) => {
      const flow = flowOf(inputs, name)
      return perMillion(name, quantitiesOf(inputs, name), (key) => Math.round((100 * flow[key]) / flow.per) / 100)
    }),
  )
  const month = (name: string, quantities: Quantities) => [
    name,
    dollars(costOf(quantities, inputs)),
    shares(quantities, inputs),
  ]
  printTable(
    'A month',
    ['of', 'cost', 'shares'],
    [
      month('a deployment without relays and users', idleMonth(inputs)),
      month(`an idle relay (a heartbeat every ${inputs.units.heartbeatSeconds} s)`, relayMonth(inputs)),
      month('a relay with a job of a batch every hour', plus(relayMonth(inputs), times(batchJob(inputs), 730))),
      month('10,000 single jobs', times(quantitiesOf(inputs, singleJob), 10_000)),
    ],
  )
  printTable(
    'Three fleets, a month',
    ['fleet', 'clusters', 'users', 'cost', 'per cluster', 'shares'],
    inputs.assumptions.fleets.map((fleet) => {
      const quantities = fleetMonth(inputs, fleet)
      const usd = costOf(quantities, inputs)
      const { name, clusters, users } = fleet
      return [name, clusters, users, dollars(usd), dollars(usd / clusters), shares(quantities, inputs)]
    }),
  )
}

if (values.measure) {
  const { measureUnits } = await import('../units/measure.ts')
  await measureUnits()
}
try {
  printCost(await readInputs(values.prices))
} catch (error) {
  console.error(`The cost cannot be computed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
// The SDK's connections to the emulators stay open.
if (values.measure) process.exit()
