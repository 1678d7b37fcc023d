import type { Assumptions, Inputs } from './inputs.ts'
import { plus, type Quantities, times } from './quantities.ts'
import { flowOf, idleMonth, metricsOf, quantitiesOf } from './usage.ts'

/** What a whole platform takes in a month: its fleet, its users, and what runs by itself. */

/** The flows of an hour of an idle relay, and of a job of a batch from its submission to its result. */
export const idleHour = 'an hour of an idle relay'
export const singleJob = 'a single job'
export const batchParts = [
  'a job of a batch, until its relay can have it',
  'a job of a batch, from its relay to its result',
] as const

const gigabyte = 1e9
const metricsOfRoute = 6

export const batchJob = (inputs: Inputs): Quantities => plus(...batchParts.map((name) => quantitiesOf(inputs, name)))

/** A month of a relay that has nothing to do. */
export const relayMonth = (inputs: Inputs): Quantities =>
  times(quantitiesOf(inputs, idleHour), inputs.assumptions.hoursPerMonth)

/** The name under which a page of clusters was read: it says how long the page is. */
const listName = ({ units }: Inputs): string =>
  Object.keys(units.flows).find((name) => name.startsWith('list clusters')) ?? 'list clusters'

type Fleet = Assumptions['fleets'][number]

/** What users do in a month. */
function usersMonth(inputs: Inputs, { users }: Fleet): Quantities {
  const { day } = inputs.assumptions
  const each: [name: string, count: number][] = [
    ['sign in', day.signInsPerUser],
    ['refresh a session', day.refreshesPerUser],
    ['GET cluster', day.readsPerUser],
    [listName(inputs), day.listsPerUser],
    ['a change (PATCH cluster)', day.changesPerUser],
    [singleJob, day.singleJobsPerUser],
    ['GET job', day.singleJobsPerUser * day.pollsPerJob],
  ]
  const day1 = plus(...each.map(([name, count]) => times(quantitiesOf(inputs, name), count)))
  return times(day1, users * day.workdaysPerMonth)
}

/** What the table holds: clusters, and the jobs of the months that are kept. */
function storageOf({ units, assumptions }: Inputs, { clusters, users }: Fleet): Quantities {
  const { day, hoursPerMonth } = assumptions
  const jobs =
    clusters * day.batchJobsPerCluster * (hoursPerMonth / 24) + users * day.singleJobsPerUser * day.workdaysPerMonth
  const { cluster, batchJob: job } = units.storage
  const storedGb = (clusters * cluster + jobs * day.monthsOfJobs * job) / gigabyte
  return { storedGb, ...(units.deployment.isRestorable && { restorableGb: storedGb }) }
}

/** Metrics beyond those of an idle platform; where the gateway measures each route, those of half of them. */
function metricsMonth(inputs: Inputs): Quantities {
  const { flows, deployment } = inputs.units
  const idle = metricsOf(inputs, Object.keys(deployment.schedules))
  const ofRoutes = deployment.hasRouteMetrics ? (deployment.routes / 2) * metricsOfRoute : 0
  return { metrics: metricsOf(inputs, Object.keys(flows)) - idle + ofRoutes }
}

/** A month of a fleet, whose relays are all there, and whose clusters get their jobs by batches. */
export function fleetMonth(inputs: Inputs, fleet: Fleet): Quantities {
  const { day, hoursPerMonth } = inputs.assumptions
  const batchJobs = fleet.clusters * day.batchJobsPerCluster * (hoursPerMonth / 24)
  return plus(
    idleMonth(inputs),
    times(relayMonth(inputs), fleet.clusters),
    times(batchJob(inputs), batchJobs),
    usersMonth(inputs, fleet),
    storageOf(inputs, fleet),
    metricsMonth(inputs),
  )
}

/** How many write units a flow takes when entries of indexes count once in a transaction, not twice. */
export const leastWriteUnits = (inputs: Inputs, name: string): number => {
  const { writeUnits, indexUnits, per } = flowOf(inputs, name)
  return (writeUnits - indexUnits / 2) / per
}
