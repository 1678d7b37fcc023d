import { readFile } from 'node:fs/promises'
import * as z from 'zod'

/** What the page about cost is computed from: measured units, prices, quotas, and what is assumed. All files. */

const count = z.number().min(0)

const Flow = z.object({
  per: z.number().min(1),
  invocations: count,
  requests: count,
  meteredRequests: count,
  answerBytes: count,
  storeCalls: count,
  rounds: count,
  readUnits: count,
  writeUnits: count,
  indexUnits: count,
  messages: count,
  secretReads: count,
  logLines: count,
  logBytes: count,
  metricLines: count,
  metricBytes: count,
  functions: z.record(z.string(), z.object({ invocations: count, rounds: count })),
  metrics: z.array(z.string()),
  partitions: z.record(z.string(), count),
})
export type Flow = z.infer<typeof Flow>

const Deployment = z.object({
  functions: count,
  alarms: z.array(z.string()),
  alarmMetrics: count,
  dashboards: count,
  secrets: count,
  routes: count,
  hasRouteMetrics: z.boolean(),
  requestsPerSecond: count,
  accessLogBytes: count,
  hasSystemLog: z.boolean(),
  memoryMb: z.record(z.string(), count),
  logRetentionDays: count,
  isRestorable: z.boolean(),
  consumers: z.array(z.object({ queue: z.string(), batchSize: count, maximumConcurrency: count.optional() })),
  schedules: z.record(z.string(), count),
})

const Units = z.object({
  measuredAt: z.string(),
  commit: z.string(),
  node: z.string(),
  heartbeatSeconds: count,
  batchSize: count,
  deployment: Deployment,
  storage: z.object({ cluster: count, batchJob: count }),
  flows: z.record(z.string(), Flow),
})
export type Units = z.infer<typeof Units>

/** Everything that has a price. */
export const priceNames = [
  'gatewayRequests',
  'invocations',
  'gigabyteSeconds',
  'writeUnits',
  'readUnits',
  'storedGb',
  'restorableGb',
  'queueRequests',
  'logGb',
  'keptLogGb',
  'metrics',
  'alarmMetrics',
  'dashboards',
  'secrets',
  'secretReads',
  'scheduledRuns',
  'outGb',
] as const
export type PriceName = (typeof priceNames)[number]

const Price = z.object({
  service: z.string(),
  usd: count,
  per: z.number().positive(),
  unit: z.string(),
  /** What an account gets for nothing each month, for good. */
  free: count.optional(),
  source: z.string(),
})
const Prices = z.object({
  region: z.string(),
  currency: z.literal('USD'),
  caveat: z.string(),
  prices: z.record(z.enum(priceNames), Price),
})
export type Prices = z.infer<typeof Prices>

const limitNames = [
  'gatewayRequestsPerSecond',
  'concurrency',
  'concurrencyPerTenSeconds',
  'newTableWriteUnits',
  'tableWriteUnits',
  'partitionWriteUnits',
  'inFlight',
  'transactionsPerItem',
] as const
const Limits = z.object({
  region: z.string(),
  caveat: z.string(),
  limits: z.record(z.enum(limitNames), z.object({ value: count, what: z.string(), source: z.string() })),
})
export type Limits = z.infer<typeof Limits>

const Assumptions = z.object({
  hoursPerMonth: count,
  invocationMs: count,
  roundMs: count,
  passwordMs: count,
  logEventBytes: count,
  systemLogBytes: count,
  keptLogShare: count,
  /** Of a queue whose consumer's concurrency is limited, and of others when they are idle. */
  pollers: count,
  pollersUnlimited: count,
  pollSeconds: count,
  day: z.object({
    workdaysPerMonth: count,
    signInsPerUser: count,
    refreshesPerUser: count,
    readsPerUser: count,
    listsPerUser: count,
    changesPerUser: count,
    singleJobsPerUser: count,
    pollsPerJob: count,
    batchJobsPerCluster: count,
    monthsOfJobs: count,
  }),
  fleets: z.array(z.object({ name: z.string(), clusters: count, users: count })),
})
export type Assumptions = z.infer<typeof Assumptions>

export interface Inputs {
  units: Units
  prices: Prices
  limits: Limits
  assumptions: Assumptions
}

const here = (name: string) => new URL(name, import.meta.url)
const read = async <Schema extends z.ZodType>(schema: Schema, file: URL | string): Promise<z.output<Schema>> =>
  schema.parse(JSON.parse(await readFile(file, 'utf8')))

/** The committed inputs, or another list of prices. */
export const readInputs = async (prices: URL | string = here('prices.json')): Promise<Inputs> => ({
  units: await read(Units, here('../../bench/units.json')),
  prices: await read(Prices, prices),
  limits: await read(Limits, here('limits.json')),
  assumptions: await read(Assumptions, here('assumptions.json')),
})
