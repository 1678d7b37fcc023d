import { bootstrap } from '@platform/core/platform/bootstrap'
import { config } from '@platform/core/config'
import { readSecret } from '@platform/core/aws/secrets'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { handler as clusters } from '../../../functions/clusters.ts'
import { handler as relays } from '../../../functions/relay.ts'
import { handler as setup } from '../../../functions/setup.ts'
import { jsonRequest, type TestResponse, send, type TestRequest } from '../../support/request.ts'
import { newCaller, newRelayKey } from '../../support/fixtures.ts'
import type { BenchRelay } from './relay.ts'

/** Who the bench acts for. */
export interface Tenant {
  organisationId: string
  accessToken: string
  refreshToken: string
}

export const administrator = { username: 'admin', password: 'correct horse battery' }

/** Starts the platform and completes its setup. */
export async function setUp(): Promise<Tenant> {
  await bootstrap()
  const request = {
    platformName: 'Bench',
    publicUrl: 'https://platform.example.com',
    timezone: 'Europe/Berlin',
    adminUsername: administrator.username,
    adminEmail: 'admin@example.com',
    adminPassword: administrator.password,
    initialAdminToken: await readSecret(config.PLAT_SECRET_ADMIN_TOKEN),
  }
  const { json } = accepted(await send(setup, jsonRequest('/api/v1/setup/complete', request)))
  const claims = JSON.parse(Buffer.from(json.accessToken.split('.')[1], 'base64url').toString())
  return { ...json, organisationId: claims.org }
}

/** A token of a fresh administrator of an organisation. */
export const newToken = async (organisationId: string): Promise<string> =>
  issueAccessToken({ ...(await newCaller(organisationId)), roles: ['OrgAdmin'] })

export const bearer = (accessToken: string) => ({ Authorization: `Bearer ${accessToken}` })

export const getting = (target: string, accessToken: string): TestRequest => ({ target, headers: bearer(accessToken) })

/** Throws unless a request was answered with success. */
export function accepted(received: TestResponse): TestResponse {
  if (received.status < 300) return received
  throw new Error(`A request of the bench was refused with ${received.status}: ${received.text}`)
}

let clusterCount = 0

/** A registration that has a name of its own. */
export const registration = (accessToken: string): TestRequest => {
  const body = { name: `bench-${++clusterCount}`, type: 'Hypervisor' }
  return jsonRequest('/api/v1/clusters', body, bearer(accessToken))
}

/** An enrollment, and the relay that it makes once it is answered. */
export function enrollment(enrollmentToken: string) {
  const { privateKey, wire } = newRelayKey()
  const facts = { displayName: 'relay on node-1', hostname: 'node-1', platform: 'linux', relayVersion: '0.1.0' }
  const body = { enrollmentToken, publicKey: wire, ...facts, nodes: [{ name: 'node-1' }] }
  const relayOf = ({ json }: Pick<TestResponse, 'json'>): BenchRelay => ({
    relayId: json.relayId,
    privateKey,
    nodeIds: json.nodes.map(({ id }: { id: string }) => id),
  })
  return { sent: jsonRequest('/api/v1/relay/enroll', body), relayOf }
}

/** A cluster with its relay. */
export async function newCluster(accessToken: string): Promise<{ clusterId: string; relay: BenchRelay }> {
  const { json: cluster } = accepted(await send(clusters, registration(accessToken)))
  const { sent, relayOf } = enrollment(cluster.enrollmentToken)
  return { clusterId: cluster.id, relay: relayOf(accepted(await send(relays, sent))) }
}

/** Clusters that wait for their relays. */
export async function newClusters(accessToken: string, count: number): Promise<string[]> {
  const clusterIds: string[] = []
  // One after another: they all change the head of one list.
  while (clusterIds.length < count) clusterIds.push(accepted(await send(clusters, registration(accessToken))).json.id)
  return clusterIds
}
