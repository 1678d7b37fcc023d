import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as tend } from '../../../functions/queue/batches.ts'
import { send } from '../../support/request.ts'
import { bookAll } from '../operations/batches.ts'
import { metered, storeCallsOf, type Usage } from '../support/meter.ts'
import { atMost, type Section } from '../support/section.ts'
import { accepted, type Tenant } from '../support/tenant.ts'
import { inTurn, jobsInBatch, sameScript, submission } from './submissions.ts'

interface Costs {
  name: string
  expanded: Usage
  booked: Usage
}

/** What a batch costs once it is accepted, until its jobs stand in the inboxes and its records in the books. */
export async function measureExpansion(tenant: Tenant, clusterIds: readonly string[]): Promise<Section> {
  const costs = [
    await costsOf(tenant, '1 cluster', clusterIds.slice(0, 1)),
    await costsOf(tenant, `${clusterIds.length} clusters`, clusterIds),
  ]
  return {
    title: `Expanding a batch of ${jobsInBatch} jobs`,
    columns: ['batch for', 'step', 'store calls', 'sends', 'read units', 'write units', 'write units a job'],
    rows: costs.flatMap(({ name, expanded, booked }) => [
      rowOf(name, 'expand', expanded),
      rowOf(name, 'enter into the books', booked),
    ]),
    goals: costs.flatMap(({ name, expanded, booked }) => [
      // A transaction holds 100 writes, and a job takes three of them or, with its cluster, four.
      atMost(`batch for ${name}, expanded: calls`, storeCallsOf(expanded), name === '1 cluster' ? 20 : 25),
      atMost(`batch for ${name}, expanded: messages`, sendsOf(expanded), 1),
      atMost(`batch for ${name}, booked: messages`, sendsOf(booked), 0),
    ]),
  }
}

async function costsOf(tenant: Tenant, name: string, clusterIds: readonly string[]): Promise<Costs> {
  const { organisationId, accessToken } = tenant
  await bookAll(organisationId)
  const { json } = accepted(await send(jobs, submission(accessToken, inTurn(clusterIds), sameScript)))
  const body = JSON.stringify({ organisationId, batchId: json.batchId })
  const { usage: expanded } = await metered(() => tend({ Records: [{ messageId: 'bench', body }] }))
  const { usage: booked } = await metered(() => bookAll(organisationId))
  return { name, expanded, booked }
}

const sendsOf = ({ calls }: Usage): number => calls['SendMessage'] ?? 0

const rowOf = (name: string, step: string, usage: Usage) => {
  const { readUnits, writeUnits } = usage
  return [name, step, storeCallsOf(usage), sendsOf(usage), readUnits, writeUnits, writeUnits / jobsInBatch]
}
