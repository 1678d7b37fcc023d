import { batchJob, fleetMonth, leastWriteUnits, relayMonth, singleJob } from './fleets.ts'
import type { Inputs } from './inputs.ts'
import { costOf, plus, type Quantities, sharesOf, times } from './quantities.ts'
import { costText, opening, scaleText } from './prose.ts'
import { leverTable } from './levers.ts'
import { scaleTables } from './scale.ts'
import { about, exact, money, percent, table } from './table.ts'
import { flowOf, idleMonth, idleParts, quantitiesOf } from './usage.ts'

const million = 1_000_000
const busyJobsPerMonth = 730

/** The page about cost and scale. The same inputs make the same page. */
export function pageOf(inputs: Inputs): string {
  const parts = [
    opening(inputs),
    `## Calls\n\n${costText.calls}\n\n${callTable(inputs)}`,
    `## Relays\n\n${relayTable(inputs)}`,
    `## Jobs\n\n${costText.jobs(inputs)}\n\n${jobTable(inputs)}`,
    `## A month in which nobody comes\n\n${costText.idle(inputs)}\n\n${idleTable(inputs)}`,
    `## Three fleets\n\n${costText.fleets(inputs)}\n\n${fleetTable(inputs)}`,
    `## What would make it cheaper\n\n${leverTable(inputs)}`,
    `## What comes first when it grows\n\n${scaleText.opening}\n\n${scaleTables(inputs)}`,
    `## What it is computed from\n\n${costText.sources(inputs)}\n\n${priceTable(inputs)}\n\n${limitTable(inputs)}`,
    scaleText.missing,
  ]
  return `${parts.join('\n\n')}\n`
}

const shown = (inputs: Inputs, quantities: Quantities): string => {
  const total = costOf(quantities, inputs.prices)
  const shares = sharesOf(quantities, inputs.prices).filter(([, usd]) => usd / total >= 0.03)
  return shares.map(([service, usd]) => `${service} ${percent(usd / total)}`).join(', ')
}

/** Every flow but those of clocks, jobs and relays, which have tables of their own. */
const isCall = (name: string): boolean => !/^(schedule\/|an hour|a single job|a job of|a change that)/.test(name)

/** What a change costs more when one webhook hears it. */
function deliveryRow(inputs: Inputs): string[] {
  const [heard, unheard] = [
    flowOf(inputs, 'a change that one webhook hears'),
    flowOf(inputs, 'a change (PATCH cluster)'),
  ]
  const quantities = plus(
    quantitiesOf(inputs, 'a change that one webhook hears'),
    times(quantitiesOf(inputs, 'a change (PATCH cluster)'), -1),
  )
  return [
    'a delivery to a webhook',
    money(costOf(times(quantities, million), inputs.prices)),
    exact(heard.storeCalls - unheard.storeCalls),
    exact(heard.readUnits - unheard.readUnits),
    exact(heard.writeUnits - unheard.writeUnits),
    about(million * 1000 * (quantities.logGb ?? 0)),
    shown(inputs, quantities),
  ]
}

function callTable(inputs: Inputs): string {
  const rows = Object.keys(inputs.units.flows)
    .filter(isCall)
    .map((name) => {
      const flow = flowOf(inputs, name)
      const quantities = quantitiesOf(inputs, name)
      const each = (count: number) => exact(count / flow.per)
      return [
        name,
        money(costOf(times(quantities, million), inputs.prices)),
        each(flow.storeCalls),
        each(flow.readUnits),
        each(flow.writeUnits),
        about(million * 1000 * (quantities.logGb ?? 0)),
        shown(inputs, quantities),
      ]
    })
  return table(
    ['call', ' per million', ' store calls', ' read units', ' write units', ' bytes of logs', 'shares'],
    [...rows, deliveryRow(inputs)],
  )
}

function relayTable(inputs: Inputs): string {
  const idle = relayMonth(inputs)
  const busy = plus(idle, times(batchJob(inputs), busyJobsPerMonth))
  const row = (name: string, month: Quantities) => [name, money(costOf(month, inputs.prices)), shown(inputs, month)]
  return table(
    ['a relay, by month', ' cost', 'shares'],
    [row(`idle, a beat every ${inputs.units.heartbeatSeconds} s`, idle), row('with a job of a batch every hour', busy)],
  )
}

function jobTable(inputs: Inputs): string {
  const names = [singleJob, ...Object.keys(inputs.units.flows).filter((name) => name.startsWith('a job of'))]
  const row = (name: string, quantities: Quantities, units: number, least: number) => [
    name,
    money(costOf(times(quantities, million), inputs.prices)),
    exact(units),
    exact(least),
    shown(inputs, quantities),
  ]
  const rows = names.map((name) => {
    const { writeUnits, per } = flowOf(inputs, name)
    return row(name, quantitiesOf(inputs, name), writeUnits / per, leastWriteUnits(inputs, name))
  })
  return table(['job', ' per million', ' write units', ' at least', 'shares'], rows)
}

function idleTable(inputs: Inputs): string {
  const parts: [string, Quantities][] = [...idleParts(inputs), ['**all of it**', idleMonth(inputs)]]
  const rows = parts.map(([what, quantities]) => [
    what,
    Object.entries(quantities).length === 1 ? about(Object.values(quantities)[0] ?? 0) : '',
    money(costOf(quantities, inputs.prices)),
    money(costOf(quantities, inputs.prices, true)),
  ])
  return table(['each month', ' count', ' list price', ' after what is always free'], rows)
}

function fleetTable(inputs: Inputs): string {
  const rows = inputs.assumptions.fleets.map((fleet) => {
    const month = fleetMonth(inputs, fleet)
    const usd = costOf(month, inputs.prices)
    return [
      fleet.name,
      about(fleet.clusters),
      about(fleet.users),
      money(usd),
      money(usd / fleet.clusters),
      shown(inputs, month),
    ]
  })
  return table(['fleet', ' clusters', ' users', ' a month', ' for each cluster', 'shares'], rows)
}

function priceTable({ prices }: Inputs): string {
  const rows = Object.values(prices.prices).map(({ service, usd, per, unit, free, source }) => [
    service,
    unit,
    `$${usd}${per === 1 ? '' : ` for ${about(per)}`}`,
    free === undefined ? '' : about(free),
    source,
  ])
  return table(['service', 'unit', ' price', ' always free', 'who says so'], rows)
}

const limitTable = ({ limits }: Inputs): string =>
  table(
    ['quota', ' value', 'who says so'],
    Object.values(limits.limits).map(({ what, value, source }) => [what, about(value), source]),
  )
