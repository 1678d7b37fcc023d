import { idleHour, relayMonth } from './fleets.ts'
import type { Inputs, Units } from './inputs.ts'
import { costOf } from './quantities.ts'
import { money, table } from './table.ts'
import { flowOf, idleMonth, quantitiesOf } from './usage.ts'

const million = 1_000_000

/** A change of the settings or of the deployment. */
interface Lever {
  what: string
  units: Partial<Units>
  loses: string
}

/** What each change would save, each by itself. */
export const leverTable = (inputs: Inputs): string =>
  table(
    ['change', ' million GET cluster', ' idle relay', ' idle platform', 'what it loses'],
    [{ what: 'as deployed', units: {}, loses: '' }, ...levers(inputs)].map((lever) => rowOf(inputs, lever)),
  )

function rowOf(inputs: Inputs, { what, units, loses }: Lever): string[] {
  const changed = { ...inputs, units: { ...inputs.units, ...units } }
  const read = million * costOf(quantitiesOf(changed, 'GET cluster'), changed.prices)
  const months = [relayMonth(changed), idleMonth(changed)].map((month) => money(costOf(month, changed.prices)))
  return [what, money(read), ...months, loses]
}

const noLines = { logLines: 0, logBytes: 0 }
const noMetrics = { metricLines: 0, metricBytes: 0, metrics: [] }

function levers(inputs: Inputs): Lever[] {
  const { deployment, flows } = inputs.units
  const all = (change: object) =>
    Object.fromEntries(Object.entries(flows).map(([name, flow]) => [name, Object.assign({}, flow, change)]))
  const noAccessLog = { ...deployment, accessLogBytes: 0 }
  return [
    {
      what: '`PLAT_LOG_LEVEL=warn`',
      units: { flows: all(noLines) },
      loses: 'the line of each request: traces lead to what went wrong only',
    },
    {
      what: "no log of the gateway's own",
      units: { deployment: noAccessLog },
      loses: 'what the gateway answers without calling a function',
    },
    {
      what: '`PLAT_METRICS: off` in `infra/functions.ts`',
      units: { flows: all(noMetrics) },
      loses: 'alarms 3 (take it out: silence wakes it), 4, 7, 10 and 11',
    },
    {
      what: 'the three together',
      units: { flows: all({ ...noLines, ...noMetrics }), deployment: noAccessLog },
      loses: 'all of that',
    },
    {
      what: '`PLAT_HEARTBEAT_INTERVAL_SECONDS=60`',
      units: { flows: { ...flows, [idleHour]: { ...flowOf(inputs, idleHour), per: 2 } } },
      loses: 'jobs reach their relay, and silence is noticed, a minute later at the most instead of half of one',
    },
    {
      what: 'dead letters polled without `maximumConcurrency`',
      units: { deployment: { ...deployment, consumers: deployment.consumers.map(unlimitedIfDead) } },
      loses: 'nothing: hardly anything ever comes there',
    },
    {
      what: 'no alarms and no dashboard',
      units: { deployment: { ...deployment, alarmMetrics: 0, dashboards: 0 } },
      loses: 'whoever wakes up',
    },
  ]
}

type Consumer = Units['deployment']['consumers'][number]

const unlimitedIfDead = ({ queue, batchSize, maximumConcurrency }: Consumer): Consumer =>
  queue.endsWith('-dead-letter') || maximumConcurrency === undefined
    ? { queue, batchSize }
    : { queue, batchSize, maximumConcurrency }
