import { batchJob, relayMonth } from '../../scripts/cost/fleets.ts'
import { readInputs } from '../../scripts/cost/inputs.ts'
import { costOf, times } from '../../scripts/cost/quantities.ts'
import { flowOf, idleMonth, quantitiesOf } from '../../scripts/cost/usage.ts'
import { atMost, hope, type Section } from '../support/section.ts'

const million = 1_000_000

/** What the model of cost makes of the units that were counted last (`npm run cost -- --measure`). */
export async function computeMoney(): Promise<Section> {
  const inputs = await readInputs()
  const { prices, units } = inputs
  const dollars = {
    'a million reads of a cluster': [costOf(times(quantitiesOf(inputs, 'GET cluster'), million), prices), 1.6],
    'a million jobs of batches': [costOf(times(batchJob(inputs), million), prices), 6],
    'a month in which nobody comes': [costOf(idleMonth(inputs), prices), 1.5],
    'a month of an idle relay': [costOf(relayMonth(inputs), prices), 0.22],
  } as const
  const lines = flowOf(inputs, 'an hour of an idle relay').logLines
  return {
    title: 'Money, on paper',
    notes: [
      `Dollars that AWS would charge in ${prices.region}, by the [model of cost](../docs/cost-and-scale.md): units that were counted on ${units.measuredAt}, times prices from memory. These goals were set before anything was built; what the distance is made of, the model says.`,
    ],
    columns: ['what', 'dollars', 'goal'],
    rows: Object.entries(dollars).map(([what, [usd, goal]]) => [what, usd, goal]),
    goals: [
      ...Object.entries(dollars).map(([what, [usd, goal]]) => hope(atMost(`dollars: ${what}`, usd, goal))),
      hope(atMost('idle hour: lines of the log', lines, 6)),
    ],
  }
}
