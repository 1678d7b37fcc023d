import { readFile } from 'node:fs/promises'
import * as z from 'zod'

/** The model of AWS cost: measured units (units.json) times prices (prices.json) under assumptions (assumptions.json). */

const count = z.number().min(0)

const Flow = z.object({
  per: z.number().min(1),
  invocations: count,
  requests: count,
  meteredRequests: count,
  answerBytes: count,
  storeCalls: count,
  readUnits: count,
  writeUnits: count,
  messages: count,
  secretReads: count,
  logLines: count,
  logBytes: count,
  metricLines: count,
  metricBytes: count,
  functions: z.record(z.string(), z.object({ invocations: count, rounds: count })),
  metrics: z.array(z.string()),
})
type Flow = z.infer<typeof Flow>

const Units = z.object({
  measuredAt: z.string(),
  heartbeatSeconds: count,
  deployment: z.looseObject({
    alarmMetrics: count,
    dashboards: count,
    secrets: count,
    accessLogBytes: count,
    hasSystemLog: z.boolean(),
    memoryMb: z.record(z.string(), count),
    logRetentionDays: count,
    isRestorable: z.boolean(),
    consumers: z.array(z.object({ queue: z.string(), batchSize: count, maximumConcurrency: count.optional() })),
    schedules: z.record(z.string(), count),
  }),
  storage: z.object({ cluster: count, batchJob: count }),
  flows: z.record(z.string(), Flow),
})

const priceNames =
  'gatewayRequests invocations gigabyteSeconds writeUnits readUnits storedGb restorableGb queueRequests logGb keptLogGb metrics alarmMetrics dashboards secrets secretReads scheduledRuns outGb'.split(
    ' ',
  )
const Prices = z.object({
  region: z.string(),
  prices: z.record(z.enum(priceNames), z.looseObject({ service: z.string(), usd: count, per: z.number().positive() })),
})

const Fleet = z.object({ name: z.string(), clusters: count, users: count })
const Assumptions = z.object({
  hoursPerMonth: count,
  invocationMs: count,
  roundMs: count,
  passwordMs: count,
  logEventBytes: count,
  systemLogBytes: count,
  keptLogShare: count,
  pollers: count,
  pollersUnlimited: count,
  pollSeconds: count,
  day: z.record(z.string(), count),
  fleets: z.array(Fleet),
})

export interface Inputs {
  units: z.infer<typeof Units>
  prices: z.infer<typeof Prices>
  assumptions: z.infer<typeof Assumptions>
}

/** What is paid for: price name → quantity. */
export type Quantities = Record<string, number>

const read = async <Schema extends z.ZodType>(schema: Schema, file: URL | string): Promise<z.output<Schema>> =>
  schema.parse(JSON.parse(await readFile(file, 'utf8')))
const beside = (name: string) => new URL(name, import.meta.url)

/** The committed inputs, optionally with another price list. */
export const readInputs = async (prices: URL | string = beside('prices.json')): Promise<Inputs> => ({
  units: await read(Units, beside('units.json')),
  prices: await read(Prices, prices),
  assumptions: await read(Assumptions, beside('assumptions.json')),
})

export function plus(...all: readonly Quantities[]): Quantities {
  const sum: Quantities = {}
  for (const quantities of all)
    for (const [name, value] of Object.entries(quantities)) sum[name] = (sum[name] ?? 0) + value
  return sum
}

export const times = (quantities: Quantities, factor: number): Quantities =>
  Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, value * factor]))

/** Dollars by service, the largest first. Throws where a quantity has no price. */
export function costByService(quantities: Quantities, { prices }: Inputs): Map<string, number> {
  const shares = new Map<string, number>()
  for (const [name, value] of Object.entries(quantities)) {
    const price = prices.prices[name]
    if (price === undefined) throw new Error(`prices.json has no price for ${name}.`)
    shares.set(price.service, (shares.get(price.service) ?? 0) + (value * price.usd) / price.per)
  }
  return new Map([...shares].toSorted(([, one], [, other]) => other - one))
}

export const costOf = (quantities: Quantities, inputs: Inputs): number =>
  [...costByService(quantities, inputs).values()].reduce((sum, usd) => sum + usd, 0)

/** A measured flow. Throws where it was not measured. */
export function flowOf({ units }: Inputs, name: string): Flow {
  const flow = units.flows[name]
  if (flow === undefined) throw new Error(`"${name}" was not measured: run npm run cost -- --measure.`)
  return flow
}

/** What one occurrence of a flow takes; for a batch, one job. */
export function quantitiesOf(inputs: Inputs, name: string): Quantities {
  const { assumptions, units } = inputs
  const flow = flowOf(inputs, name)
  const received = Object.entries(flow.functions).filter(([each]) => each.startsWith('queue/'))
  const { accessLogBytes, hasSystemLog, logRetentionDays, memoryMb } = units.deployment
  const { logEventBytes, systemLogBytes } = assumptions
  const logBytes =
    flow.logBytes +
    flow.metricBytes +
    (flow.logLines + flow.metricLines) * logEventBytes +
    (accessLogBytes > 0 ? flow.requests * (accessLogBytes + logEventBytes) : 0) +
    (hasSystemLog ? flow.invocations * (systemLogBytes + 2 * logEventBytes) : 0)
  const gigabyteSeconds = Object.entries(flow.functions).map(
    ([each, { invocations, rounds }]) =>
      (((memoryMb[each] ?? 512) / 1024) * (invocations * assumptions.invocationMs + rounds * assumptions.roundMs)) /
      1000,
  )
  // A password hash takes a full processor, which comes with 1,769 MB.
  const hashing = name === 'sign in' ? (1769 / 1024) * (assumptions.passwordMs / 1000) : 0
  return times(
    {
      gatewayRequests: flow.meteredRequests,
      invocations: flow.invocations,
      gigabyteSeconds: gigabyteSeconds.reduce((sum, each) => sum + each, hashing),
      writeUnits: flow.writeUnits,
      readUnits: flow.readUnits,
      // Each message is sent; each batch of messages is received and deleted.
      queueRequests: flow.messages + 2 * received.reduce((sum, [, { invocations }]) => sum + invocations, 0),
      secretReads: flow.secretReads,
      logGb: logBytes / 1e9,
      keptLogGb: (logBytes / 1e9) * assumptions.keptLogShare * (logRetentionDays / 30.4),
      outGb: flow.answerBytes / 1e9,
    },
    1 / flow.per,
  )
}

export const singleJob = 'a single job'

/** A job of a batch, from its submission to its result. */
export const batchJob = (inputs: Inputs): Quantities =>
  plus(
    quantitiesOf(inputs, 'a job of a batch, until its relay can have it'),
    quantitiesOf(inputs, 'a job of a batch, from its relay to its result'),
  )

/** A month of an idle relay. */
export const relayMonth = (inputs: Inputs): Quantities =>
  times(quantitiesOf(inputs, 'an hour of an idle relay'), inputs.assumptions.hoursPerMonth)

/** Custom metrics of flows: each name of each function is charged once. */
const metricsOf = (inputs: Inputs, names: readonly string[]): number =>
  new Set(names.flatMap((name) => flowOf(inputs, name).metrics)).size

/** A month of a deployment without relays and users. */
export function idleMonth(inputs: Inputs): Quantities {
  const { deployment } = inputs.units
  const { pollers, pollersUnlimited, pollSeconds, hoursPerMonth } = inputs.assumptions
  const schedules = Object.entries(deployment.schedules)
  const polling = deployment.consumers.map(({ maximumConcurrency }) =>
    maximumConcurrency === undefined ? pollersUnlimited : pollers,
  )
  return plus(
    {
      alarmMetrics: deployment.alarmMetrics,
      metrics: metricsOf(
        inputs,
        schedules.map(([name]) => name),
      ),
      dashboards: deployment.dashboards,
      secrets: deployment.secrets,
      queueRequests: (polling.reduce((sum, each) => sum + each, 0) * hoursPerMonth * 3600) / pollSeconds,
      scheduledRuns: schedules.reduce((sum, [, runs]) => sum + runs, 0),
    },
    ...schedules.map(([name, runs]) => times(quantitiesOf(inputs, name), runs)),
  )
}

/** A month of a fleet whose relays are connected and whose clusters get jobs by batches. */
export function fleetMonth(inputs: Inputs, { clusters, users }: z.infer<typeof Fleet>): Quantities {
  const { units, assumptions } = inputs
  const per = (name: string): number => assumptions.day[name] ?? 0
  const batchJobs = clusters * per('batchJobsPerCluster') * (assumptions.hoursPerMonth / 24)
  const listing = Object.keys(units.flows).find((name) => name.startsWith('list clusters')) ?? ''
  const userDay = Object.entries({
    'sign in': per('signInsPerUser'),
    'refresh a session': per('refreshesPerUser'),
    'GET cluster': per('readsPerUser'),
    [listing]: per('listsPerUser'),
    'a change (PATCH cluster)': per('changesPerUser'),
    [singleJob]: per('singleJobsPerUser'),
    'GET job': per('singleJobsPerUser') * per('pollsPerJob'),
  }).map(([name, each]) => times(quantitiesOf(inputs, name), each))
  const jobs = batchJobs + users * per('singleJobsPerUser') * per('workdaysPerMonth')
  const storedGb = (clusters * units.storage.cluster + jobs * per('monthsOfJobs') * units.storage.batchJob) / 1e9
  return plus(
    idleMonth(inputs),
    times(relayMonth(inputs), clusters),
    times(batchJob(inputs), batchJobs),
    times(plus(...userDay), users * per('workdaysPerMonth')),
    { storedGb, restorableGb: units.deployment.isRestorable ? storedGb : 0 },
    {
      metrics: metricsOf(inputs, Object.keys(units.flows)) - metricsOf(inputs, Object.keys(units.deployment.schedules)),
    },
  )
}
