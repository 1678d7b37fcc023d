import { reauthorize } from '../accounts/current-rights.ts'
import type { Caller } from '../caller.ts'
import { parseCluster, statusCountWrite } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { commit } from '../outbox/commit.ts'
import { enrolledEvents } from './enroll-with-key.ts'
import { startRelay } from './enrollment.ts'

/** The relay receives jobs from its next heartbeat on. */
export async function approve(caller: Caller, clusterId: string): Promise<void> {
  if (!isId('clus', clusterId)) throw platformError('cluster_not_found')
  const key = keys.cluster(caller.organisationId, clusterId)
  const [, item] = await reauthorize(caller, ['clusters:admin'], [key])
  if (item === undefined) throw platformError('cluster_not_found')
  const record = parseCluster(item)
  const { pendingRelayId: relayId, relayName, nodeCount, nodesHash } = record
  if (relayId === undefined) throw platformError('no_pending_relay')
  const { set, status } = startRelay(record, { relayId, relayName, nodeCount, nodesOnline: nodeCount, nodesHash })
  const failure = await commit(caller, {
    writes: [
      patch(
        key,
        { set, remove: ['pendingRelayId'] },
        { pendingRelayId: { is: relayId }, status: { is: record.status } },
      ),
      statusCountWrite(record, record.status, status),
    ],
    response: undefined,
    audit: { action: 'cluster.approve', resource: clusterId, detail: `${record.name}: ${relayId}` },
    events: enrolledEvents(record, relayId, nodeCount),
  })
  if (failure !== undefined) throw platformError('conflict')
}
