import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { handler as auth } from '../../../functions/auth.ts'
import { handler as clusters } from '../../../functions/clusters.ts'
import { handler as relays } from '../../../functions/relay.ts'
import { jsonRequest } from '../../support/request.ts'
import { beat } from '../support/relay.ts'
import { range } from '../support/statistics.ts'
import { administrator, bearer, enrollment, getting, newCluster, registration, type Tenant } from '../support/tenant.ts'
import { type Flow, newFlow, request } from './call.ts'
import { settle } from './messages.ts'

/** Clusters of the organisation that lists are read of. */
export const fleetSize = 100
const pageSize = 20
const intervalMs = config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
/** Beats until the row remembers as many request tokens as it ever will. */
const beatsBefore = 20

/** How often something happened in a flow. */
export interface Measured {
  flow: Flow
  per: number
}
export type Flows = Record<string, Measured>

const once = (flow: Flow): Measured => ({ flow, per: 1 })

/** Does a piece of work, and answers what it took. */
export async function measure(work: (flow: Flow) => Promise<unknown>): Promise<Measured> {
  const flow = newFlow()
  await work(flow)
  return once(flow)
}

/** Registers a cluster and enrolls its relay, books and all. */
export async function newRelay(flow: Flow, accessToken: string) {
  const { json: cluster } = await request(flow, 'clusters', clusters, registration(accessToken))
  await settle(flow)
  const { sent, relayOf } = enrollment(cluster.enrollmentToken)
  const relay = relayOf(await request(flow, 'relay', relays, sent))
  await settle(flow)
  return { clusterId: String(cluster.id), relay }
}

/** Reads, sign-in, and a cluster's beginning. The process is warm. */
export async function simpleFlows({ accessToken }: Tenant): Promise<Flows> {
  const { clusterId } = await newRelay(newFlow(), accessToken)
  const read = (target: string) => measure((flow) => request(flow, 'clusters', clusters, getting(target, accessToken)))
  const path = `/api/v1/clusters/${clusterId}`
  await read(path)
  const signIn = await measure(async (flow) => {
    await request(flow, 'auth', auth, jsonRequest('/api/v1/auth/login', administrator))
    await settle(flow)
  })
  const { json } = await request(newFlow(), 'auth', auth, jsonRequest('/api/v1/auth/login', administrator))
  await settle(newFlow())
  return {
    'GET cluster': await read(path),
    [`list clusters, a page of ${pageSize}`]: await read(`/api/v1/clusters?pageSize=${pageSize}`),
    'sign in': signIn,
    'refresh a session': await measure((flow) =>
      request(flow, 'auth', auth, jsonRequest('/api/v1/auth/refresh', { refreshToken: json.refreshToken })),
    ),
    'a change (PATCH cluster)': await renaming(clusterId, accessToken),
    'a cluster, registered and enrolled': await measure((flow) => newRelay(flow, accessToken)),
  }
}

/** A change of a cluster's name, and what follows from it. */
export const renaming = (clusterId: string, accessToken: string): Promise<Measured> =>
  measure(async (flow) => {
    const body = { name: `renamed-${crypto.randomUUID().slice(0, 8)}` }
    const sent = { ...jsonRequest(`/api/v1/clusters/${clusterId}`, body, bearer(accessToken)), method: 'PATCH' }
    await request(flow, 'clusters', clusters, sent)
    await settle(flow)
  })

/** One hour of a relay that has nothing to do. */
export async function idleHour({ accessToken }: Tenant): Promise<Measured> {
  const { relay } = await newCluster(accessToken)
  await settle(newFlow())
  const beats = 3_600_000 / intervalMs
  const beatOnce = async (flow: Flow) => {
    shiftClock(intervalMs)
    await request(flow, 'relay', relays, await beat(relay))
  }
  for (const _ of range(beatsBefore)) await beatOnce(newFlow())
  const measured = await measure(async (flow) => {
    for (const _ of range(beats)) await beatOnce(flow)
  })
  shiftClock(-intervalMs * (beatsBefore + beats))
  return measured
}
