import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { permissionsOf } from '@platform/contract/permission'
import { bootstrap } from '@platform/core/platform/bootstrap'
import { type Caller, type RelayCaller } from '@platform/core/caller'
import { now, nowSeconds } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { create } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { enroll } from '@platform/core/relays/enrollment'
import { newId } from '@platform/core/id'
import { readSecret } from '@platform/core/aws/secrets'
import { open } from '@platform/core/accounts/session'

/** People, relays and clusters for tests: each test makes an organisation of its own. */

export const administrator = {
  platformName: 'Test Platform',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: 'admin',
  adminEmail: 'admin@example.com',
  adminPassword: 'correct horse battery',
}

/** Somebody who is signed in to a fresh organisation, or to a given one. */
export async function callerOf(organisationId = newId('org'), role = 'OrgAdmin'): Promise<Caller> {
  const userId = newId('user')
  const row = { id: userId, organisationId, username: userId, email: 'u@example.com', roles: [role] }
  const user = { ...row, authProvider: 'local', createdAtMs: now(), version: 1 }
  const session = open(user)
  await transact([create(keys.user(organisationId, userId), user), ...session.steps])
  const permissions = new Set(permissionsOf([role]))
  return { kind: 'user', userId, organisationId, sessionId: session.id, permissions }
}

export const adminToken = async (): Promise<string> => (await readSecret(config.PLAT_SECRET_ADMIN_TOKEN)) ?? ''

/** Signing keys exist after one API start. */
export const started = (): Promise<void> => bootstrap()

/** A relay's key as it appears on the wire. */
export function relayKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  return { privateKey, wire: { kty: 'OKP', crv: 'Ed25519', x } as const }
}

export const enrollRequest = (enrollmentToken: string, nodes = ['node-1']) => ({
  enrollmentToken,
  publicKey: relayKey().wire,
  displayName: 'relay',
  hostname: 'host',
  platform: 'linux',
  relayVersion: '0.1.0',
  nodes: nodes.map((name) => ({ name })),
})

/** A cluster with an enrolled relay; `beat()` is a fresh signed request of it. */
export async function enrolledCluster(caller: Caller, nodes = ['node-1']) {
  const cluster = await Cluster.register(caller, { name: `cluster ${randomUUID().slice(0, 8)}`, type: 'Hypervisor' })
  const relay = await enroll(enrollRequest(cluster.enrollmentToken, nodes))
  const request = (): RelayCaller => ({
    kind: 'relay',
    relayId: relay.relayId,
    organisationId: caller.organisationId,
    clusterId: cluster.id,
    tokenId: randomUUID(),
    issuedAtMs: nowSeconds() * 1000,
  })
  const online = relay.nodes.map(({ id }) => ({ id, status: 'Online' as const }))
  return { cluster, relay, request, beat: { nodes: online, running: [], freeSlots: 4 } }
}

/** The code of the fault that a call is refused with. */
export async function refusalOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
  return 'nothing was refused'
}
