import { newClusters, setUp } from '../support/tenant.ts'
import { newFlow } from './call.ts'
import { fleetSize, type Flows, idleHour, newRelay, simpleFlows } from './flows.ts'
import { jobFlows } from './jobs.ts'
import { settle } from './messages.ts'
import { moduleFlows, webhookFlows } from './outside.ts'
import { scheduledFlows } from './schedules.ts'
import { storedBytes } from './storage.ts'

/** Bytes that something leaves in the table, its indexes and books included, before any of it has expired. */
interface Storage {
  cluster: number
  batchJob: number
}

/** Everything that is measured, one after the other. */
export async function allFlows(receiver: string, batchSize: number): Promise<{ flows: Flows; storage: Storage }> {
  const tenant = await setUp()
  await settle(newFlow())
  const scheduled = await scheduledFlows(tenant)
  await newClusters(tenant.accessToken, fleetSize)
  await settle(newFlow())
  const simple = await simpleFlows(tenant)
  const hour = await idleHour(tenant)
  const outside = { ...(await webhookFlows(tenant, receiver)), ...(await moduleFlows(tenant)) }

  const [clusters, empty] = [10, await storedBytes()]
  for (let index = 0; index < clusters; index++) await newRelay(newFlow(), tenant.accessToken)
  const cluster = ((await storedBytes()) - empty) / clusters
  const before = await storedBytes()
  const jobs = await jobFlows(tenant, batchSize)
  const batchJob = ((await storedBytes()) - before) / batchSize - cluster
  return {
    flows: { ...simple, 'an hour of an idle relay': hour, ...jobs, ...outside, ...scheduled },
    storage: { cluster: Math.round(cluster), batchJob: Math.round(batchJob) },
  }
}
