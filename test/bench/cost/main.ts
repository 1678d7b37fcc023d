/** `npm run cost`: prints the cost on AWS. */
import { parseCommandLine } from '@platform/local/command-line'
import { printTable } from '../support/section.ts'
import {
  batchJob,
  costByService,
  costOf,
  fleetMonth,
  fleets,
  flowOf,
  idleMonth,
  plus,
  pollingRelayMonth,
  type Quantities,
  quantitiesOf,
  readInputs,
  relayMonth,
  singleJob,
  multiply,
} from './model.ts'

const usage = `npm run cost -- [--measure] [--prices FILE]

Prints the cost on AWS.

  --measure      measures the units again
  --prices FILE  uses other prices`

const { values } = parseCommandLine(usage, {
  options: { measure: { type: 'boolean' }, prices: { type: 'string' } },
})
if (values.measure) await (await import('./measure.ts')).measureUnits()
const inputs = await readInputs(values.prices)

const dollars = (usd: number): string => (usd >= 100 ? `$${Math.round(usd)}` : `$${usd.toFixed(2)}`)

function shares(quantities: Quantities): string {
  const total = costOf(quantities, inputs)
  return [...costByService(quantities, inputs)]
    .filter(([, usd]) => usd / total >= 0.03)
    .map(([service, usd]) => `${service} ${Math.round((100 * usd) / total)} %`)
    .join(', ')
}

printTable({
  title: `A million of each (${inputs.prices.region}, units measured on ${inputs.units.measuredAt})`,
  columns: ['operation', 'cost', 'store calls', 'write units', 'shares'],
  rows: Object.keys(inputs.units.flows)
    .filter((name) => !/^(schedule\/|an hour)/.test(name))
    .map((name) => {
      const { storeCalls, writeUnits, per } = flowOf(inputs, name)
      const quantities = multiply(quantitiesOf(inputs, name), 1_000_000)
      return [name, dollars(costOf(quantities, inputs)), storeCalls / per, writeUnits / per, shares(quantities)]
    }),
})
const months: Record<string, Quantities> = {
  'a deployment without relays and users': idleMonth(inputs),
  'an idle relay with a channel': relayMonth(inputs),
  [`an idle relay without one (a heartbeat every ${inputs.units.heartbeatSeconds} s)`]: pollingRelayMonth(inputs),
  'a relay with a job of a batch every hour': plus(relayMonth(inputs), multiply(quantitiesOf(inputs, batchJob), 730)),
  '10,000 single jobs': multiply(quantitiesOf(inputs, singleJob), 10_000),
}
printTable({
  title: 'A month',
  columns: ['of', 'cost', 'shares'],
  rows: Object.entries(months).map(([name, month]) => [name, dollars(costOf(month, inputs)), shares(month)]),
})
printTable({
  title: 'Three fleets, a month',
  columns: ['fleet', 'clusters', 'users', 'cost', 'per cluster', 'shares'],
  rows: fleets.map((fleet) => {
    const month = fleetMonth(inputs, fleet)
    const usd = costOf(month, inputs)
    return [fleet.name, fleet.clusters, fleet.users, dollars(usd), dollars(usd / fleet.clusters), shares(month)]
  }),
})
// Open connections to the emulators would keep the process running.
if (values.measure) process.exit()
