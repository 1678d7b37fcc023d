import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as relays } from '../../../functions/relay.ts'
import { jsonRequest } from '../../support/request.ts'
import { sameScript, submission } from '../batch/submissions.ts'
import { beat, type BenchRelay, signed } from '../support/relay.ts'
import { bearer, getting, type Tenant } from '../support/tenant.ts'
import { type Flow, newFlow, request } from './call.ts'
import { type Flows, measure, newRelay } from './flows.ts'
import { settle } from './messages.ts'

type Runner = Awaited<ReturnType<typeof newRelay>>

/** Jobs from their request to their result, all messages and books included. */
export async function jobFlows({ accessToken }: Tenant, batchSize: number): Promise<Flows> {
  const runner = await newRelay(newFlow(), accessToken)
  // The first one makes the process warm.
  const jobId = await singleJob(newFlow(), accessToken, runner)
  const single = await measure((flow) => singleJob(flow, accessToken, runner))
  const poll = await measure((flow) => request(flow, 'jobs', jobs, getting(`/api/v1/jobs/${jobId}`, accessToken)))
  const runners: Runner[] = []
  while (runners.length < batchSize) runners.push(await newRelay(newFlow(), accessToken))
  const ready = await measure((flow) => submit(flow, accessToken, runners))
  const done = await measure((flow) => runAll(flow, runners))
  return {
    'GET job': poll,
    'a single job': single,
    'a job of a batch, until its relay can have it': { ...ready, per: batchSize },
    'a job of a batch, from its relay to its result': { ...done, per: batchSize },
  }
}

async function singleJob(flow: Flow, accessToken: string, { clusterId, relay }: Runner): Promise<string> {
  const body = { clusterId, type: 'InvokeScript', payload: { script: sameScript() } }
  const { json } = await request(flow, 'jobs', jobs, jsonRequest('/api/v1/jobs', body, bearer(accessToken)))
  await settle(flow)
  const leaseId = await claim(flow, relay)
  await settle(flow)
  await finish(flow, relay, leaseId)
  await settle(flow)
  return json.id
}

/** The beat that brings a job, the one that follows at once, and the claim. */
async function claim(flow: Flow, relay: BenchRelay): Promise<{ jobId: string; leaseId: string }> {
  const { json } = await request(flow, 'relay', relays, await beat(relay))
  const [jobId] = json.jobs
  const path = `/api/v1/relay/jobs/${jobId}/claim`
  const { json: claimed } = await request(flow, 'relay', relays, await signed(relay, path, {}))
  await request(flow, 'relay', relays, await beat(relay))
  return { jobId, leaseId: claimed.leaseId }
}

/** One piece of output and the result. */
async function finish(flow: Flow, relay: BenchRelay, { jobId, leaseId }: { jobId: string; leaseId: string }) {
  const path = `/api/v1/relay/jobs/${jobId}`
  const [nodeId] = relay.nodeIds
  const output = { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'Linux\n' }
  await request(flow, 'relay', relays, await signed(relay, `${path}/output`, output))
  const completion = { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] }
  await request(flow, 'relay', relays, await signed(relay, `${path}/complete`, completion))
}

async function submit(flow: Flow, accessToken: string, runners: readonly Runner[]): Promise<void> {
  const clusterIds = runners.map(({ clusterId }) => clusterId)
  await request(flow, 'jobs', jobs, submission(accessToken, clusterIds, sameScript))
  await settle(flow)
}

/** All relays claim, then all end: messages come ten at a time, and the books take what has gathered. */
async function runAll(flow: Flow, runners: readonly Runner[]): Promise<void> {
  const claims: Awaited<ReturnType<typeof claim>>[] = []
  for (const { relay } of runners) claims.push(await claim(flow, relay))
  await settle(flow)
  for (const [index, { relay }] of runners.entries()) {
    const claimed = claims[index]
    if (claimed !== undefined) await finish(flow, relay, claimed)
  }
  await settle(flow)
}
