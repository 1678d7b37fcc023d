import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import assumptions from './assumptions.json' with { type: 'json' }
import type { Deployment } from './deployment.ts'
import type { Cost } from './recorder.ts'

/** AWS cost: measured units (units.json) times prices (prices.json) under assumptions (assumptions.json). */

/** The cost of a flow without its calls by action, which have no price of their own. */
export type FlowCost = Omit<Cost, 'actions'>

export interface Units {
  measuredAt: string
  commit: string
  heartbeatSeconds: number
  deployment: Deployment
  /** Bytes in the table and its indexes. */
  storage: { cluster: number; batchJob: number }
  flows: Record<string, FlowCost>
}

const Prices = z.object({
  region: z.string(),
  prices: z.record(
    z.string(),
    z.looseObject({ service: z.string(), usd: z.number().min(0), per: z.number().positive() }),
  ),
})

export interface Inputs {
  units: Units
  prices: z.infer<typeof Prices>
}

/** Price name → quantity. */
export type Quantities = Readonly<Record<string, number>>

const readJson = async (file: URL | string) => JSON.parse(await readFile(file, 'utf8'))

/** Returns the committed measurements with the given prices, or with the committed prices by default. */
export const readInputs = async (prices: URL | string = new URL('prices.json', import.meta.url)): Promise<Inputs> => ({
  units: await readJson(new URL('units.json', import.meta.url)),
  prices: Prices.parse(await readJson(prices)),
})

export function plus(...all: readonly Quantities[]): Quantities {
  const sum: Record<string, number> = {}
  for (const quantities of all)
    for (const [name, value] of Object.entries(quantities)) sum[name] = (sum[name] ?? 0) + value
  return sum
}

export const multiply = (quantities: Quantities, factor: number): Quantities =>
  Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, value * factor]))

/** Returns dollars by service, the largest first. Throws if a quantity has no price. */
export function costByService(quantities: Quantities, { prices }: Inputs): Map<string, number> {
  const costs = new Map<string, number>()
  for (const [name, value] of Object.entries(quantities)) {
    const price = prices.prices[name]
    if (price === undefined) throw new Error(`prices.json has no price for ${name}.`)
    costs.set(price.service, (costs.get(price.service) ?? 0) + (value * price.usd) / price.per)
  }
  return new Map([...costs].toSorted(([, a], [, b]) => b - a))
}

export const costOf = (quantities: Quantities, inputs: Inputs): number =>
  [...costByService(quantities, inputs).values()].reduce((sum, usd) => sum + usd, 0)

/** Returns a measured flow. Throws if units.json does not contain the flow. */
export function flowOf({ units }: Inputs, name: string): FlowCost {
  const flow = units.flows[name]
  if (flow === undefined) throw new Error(`units.json has no flow "${name}": run npm run cost -- --measure.`)
  return flow
}

export function quantitiesOf(inputs: Inputs, name: string): Quantities {
  const flow = flowOf(inputs, name)
  const { accessLogBytes, hasMetrics, hasSystemLog, logRetentionDays, memoryMb } = inputs.units.deployment
  const { logEventBytes, systemLogBytes, invocationMs, roundMs, passwordMs, keptLogShare } = assumptions
  const logBytes =
    flow.logBytes +
    flow.logLines * logEventBytes +
    (hasMetrics ? flow.metricBytes + flow.metricLines * logEventBytes : 0) +
    (accessLogBytes > 0 ? flow.requests * (accessLogBytes + logEventBytes) : 0) +
    (hasSystemLog ? flow.invocations * (systemLogBytes + 2 * logEventBytes) : 0)
  // A password hash needs a full processor, which functions with 1,769 MB have.
  let gigabyteSeconds = name === 'sign in' ? (1769 / 1024) * (passwordMs / 1000) : 0
  let receivedBatches = 0
  for (const [functionName, { invocations, rounds }] of Object.entries(flow.functions)) {
    const milliseconds = invocations * invocationMs + rounds * roundMs
    gigabyteSeconds += ((memoryMb[functionName] ?? 512) / 1024) * (milliseconds / 1000)
    if (functionName.startsWith('queue/')) receivedBatches += invocations
  }
  const units = multiply(
    {
      gatewayRequests: flow.meteredRequests,
      invocations: flow.invocations,
      gigabyteSeconds,
      writeUnits: flow.writeUnits,
      readUnits: flow.readUnits,
      // One request sends a message; two receive and delete a batch of messages.
      queueRequests: flow.messages + 2 * receivedBatches,
      secretReads: flow.secretReads,
      logGb: logBytes / 1e9,
      keptLogGb: (logBytes / 1e9) * keptLogShare * (logRetentionDays / 30.4),
      outGb: flow.responseBytes / 1e9,
    },
    1 / flow.per,
  )
  return plus(units, wakeUpsOf(name))
}

export const singleJob = 'a single job'
export const batchJob = 'a job of a batch'

/** A wake-up is published once and received once. */
const wakeUpsOf = (name: string): Quantities =>
  name === singleJob || name.startsWith(batchJob) ? { channelMessages: 2 * assumptions.wakeUpsPerJob } : {}

/**
 * Returns the quantities for a month of an idle relay whose channel is reopened every `channelHours`, each time with
 * one authorizer call and two events.
 */
export function relayMonth(inputs: Inputs): Quantities {
  const { hoursPerMonth, channelHours } = assumptions
  const channels = hoursPerMonth / channelHours
  return plus(multiply(quantitiesOf(inputs, 'an hour of an idle relay'), hoursPerMonth), {
    channelMinutes: hoursPerMonth * 60,
    channelMessages: 4 * channels,
    invocations: 3 * channels,
    writeUnits: 4 * channels,
  })
}

export const pollingRelayMonth = (inputs: Inputs): Quantities =>
  multiply(quantitiesOf(inputs, 'an hour of an idle relay without a channel'), assumptions.hoursPerMonth)

/** Returns the number of custom metrics that the flows write. AWS charges each metric name once for each function. */
const metricsOf = (inputs: Inputs, flows: readonly string[]): number =>
  inputs.units.deployment.hasMetrics ? new Set(flows.flatMap((name) => flowOf(inputs, name).metrics)).size : 0

/** Returns the quantities for a month of a deployment without relays and users. */
export function idleMonth(inputs: Inputs): Quantities {
  const { alarmMetrics, dashboards, secrets, consumers, schedules } = inputs.units.deployment
  const { pollers, pollSeconds, hoursPerMonth } = assumptions
  const runs = Object.entries(schedules)
  return plus(
    {
      alarmMetrics,
      metrics: metricsOf(inputs, Object.keys(schedules)),
      dashboards,
      secrets,
      queueRequests: (consumers * pollers * hoursPerMonth * 3600) / pollSeconds,
      scheduledRuns: runs.reduce((sum, [, count]) => sum + count, 0),
    },
    ...runs.map(([name, count]) => multiply(quantitiesOf(inputs, name), count)),
  )
}

export type Fleet = (typeof assumptions.fleets)[number]
export const { fleets } = assumptions

export function fleetMonth(inputs: Inputs, { clusters, users }: Fleet): Quantities {
  const { flows, deployment, storage } = inputs.units
  const { day, hoursPerMonth } = assumptions
  const batchJobs = clusters * day.batchJobsPerCluster * (hoursPerMonth / 24)
  const userDay = Object.entries({
    'sign in': day.signInsPerUser,
    'refresh a session': day.refreshesPerUser,
    'GET cluster': day.readsPerUser,
    'list clusters, a page of 20': day.listsPerUser,
    'a change (PATCH cluster)': day.changesPerUser,
    [singleJob]: day.singleJobsPerUser,
    'GET job': day.singleJobsPerUser * day.pollsPerJob,
  }).map(([name, count]) => multiply(quantitiesOf(inputs, name), count))
  const jobs = batchJobs + users * day.singleJobsPerUser * day.workdaysPerMonth
  const storedGb = (clusters * storage.cluster + jobs * day.monthsOfJobs * storage.batchJob) / 1e9
  const metrics = metricsOf(inputs, Object.keys(flows)) - metricsOf(inputs, Object.keys(deployment.schedules))
  return plus(
    idleMonth(inputs),
    multiply(relayMonth(inputs), clusters),
    multiply(quantitiesOf(inputs, batchJob), batchJobs),
    multiply(plus(...userDay), users * day.workdaysPerMonth),
    { storedGb, restorableGb: deployment.isRestorable ? storedGb : 0, metrics },
  )
}
