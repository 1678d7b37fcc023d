import type { BenchRelay } from '../support/relay.ts'
import { signed } from '../support/relay.ts'
import { enrollment, registration } from '../support/tenant.ts'
import { ask, type RunningPlatform } from './running.ts'

/** A cluster whose relay speaks the protocol and runs nothing: whatever it claims ends at once. */
export interface Runner {
  clusterId: string
  /** The jobs that wait, as many as there are free slots; waits for the first one if it shall. */
  beat: (freeSlots: number, waitSeconds?: number) => Promise<string[]>
  /** Claims a job and completes it. */
  run: (jobId: string) => Promise<void>
}

/** Registers a cluster and enrolls its relay, for the administrator or whoever else's token this is. */
export async function newRunner({ url }: Pick<RunningPlatform, 'url'>, accessToken: string): Promise<Runner> {
  const cluster = await ask(url, registration(accessToken))
  const { sent, relayOf } = enrollment(cluster.enrollmentToken)
  const relay: BenchRelay = relayOf({ json: await ask(url, sent) })
  const nodes = relay.nodeIds.map((id) => ({ id, status: 'Online' }))
  const call = async (target: string, body: object, headers: Record<string, string> = {}) => {
    const request = await signed(relay, target, body)
    return ask(url, { ...request, headers: { ...request.headers, ...headers } })
  }
  return {
    clusterId: cluster.id,
    beat: async (freeSlots, waitSeconds = 0) => {
      const body = { nodes, running: [], freeSlots }
      return (await call('/api/v1/relay/heartbeat', body, { prefer: `wait=${waitSeconds}` })).jobs
    },
    run: async (jobId) => {
      const path = `/api/v1/relay/jobs/${jobId}`
      const { leaseId } = await call(`${path}/claim`, {}, { 'idempotency-key': jobId })
      const completion = { leaseId, outcome: 'exited', exitCode: 0 }
      await call(`${path}/complete`, { ...completion, nodes: relay.nodeIds.map((nodeId) => ({ nodeId, exitCode: 0 })) })
    },
  }
}
