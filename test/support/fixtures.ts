import { argon2Sync, createHash, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { permissionsOf, type Role } from '@platform/contract/permission'
import { bootstrap } from '@platform/core/platform/bootstrap'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { create, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { enroll } from '@platform/core/relays/enrollment'
import { readSecret } from '@platform/core/aws/secrets'
import { open, signIn } from '@platform/core/accounts/session'
import * as Organisation from '@platform/core/accounts/organisation'
import { complete } from '@platform/core/platform/setup'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { newId } from '@platform/core/id'
import { relayAudience } from '@platform/core/relays/request-auth'
import { SignJWT } from 'jose'
import type { FunctionName } from '@platform/contract/index'
import type { GatewayHandler } from '@platform/http/response'
import { send } from './request.ts'
import { PlatformError } from '@platform/core/error'

export const administrator = {
  platformName: 'Test Platform',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: 'admin',
  adminEmail: 'admin@example.com',
  adminPassword: 'correct horse battery',
}

export async function newCaller(organisationId = newId('org'), role = 'OrgAdmin'): Promise<Caller> {
  const userId = newId('user')
  const row = { id: userId, organisationId, username: userId, email: 'u@example.com', roles: [role] }
  const user = { ...row, authProvider: 'local', createdAtMs: now(), version: 1 }
  const session = open(user)
  await transact([create(keys.user(organisationId, userId), user), ...session.writes])
  const permissions = new Set(permissionsOf([role]))
  return { kind: 'user', userId, organisationId, sessionId: session.id, permissions }
}

export const adminToken = async (): Promise<string> => (await readSecret(config.PLAT_SECRET_ADMIN_TOKEN)) ?? ''

export const bootstrapPlatform = (): Promise<void> => bootstrap()

export function newRelayKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  return { privateKey, wire: { kty: 'OKP', crv: 'Ed25519', x } as const }
}

export const enrollRequest = (enrollmentToken: string, nodes = ['node-1']) => ({
  enrollmentToken,
  publicKey: newRelayKey().wire,
  displayName: 'relay',
  hostname: 'host',
  platform: 'linux',
  relayVersion: '0.1.0',
  nodes: nodes.map((name) => ({ name })),
})

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
  const onlineNodes = relay.nodes.map(({ id }) => ({ id, status: 'Online' as const }))
  return { cluster, relay, request, heartbeat: { nodes: onlineNodes, running: [], freeSlots: 4 } }
}

export async function callerWithCluster(nodes?: string[]) {
  const caller = await newCaller()
  return { caller, enrolled: await enrolledCluster(caller, nodes) }
}

export async function errorCodeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
  return 'no error'
}

export async function expectError(call: Promise<unknown>, code: string): Promise<void> {
  const actual = await errorCodeOf(call)
  if (actual !== code) throw new Error(`Expected ${code}, but got ${actual}.`)
}

export const password = 'correct horse battery'

let addresses = 0
/** Returns a new network address, which has no failed sign-ins. */
export const newOrigin = () => ({ address: `198.51.100.${++addresses}` })

/** Advances the clock to the next minute, in which the per-minute counters of failed sign-ins start at zero. */
export const advanceToNextMinute = (): void => shiftClock(60_000 - (now() % 60_000))

export type SignedInUser = Awaited<ReturnType<typeof signInUser>>

export async function signInUser(username: string, secret = password) {
  const credentials = { username, password: secret }
  const { accessToken, refreshToken } = await signIn(credentials, newOrigin())
  const caller = await verifyAccessToken(accessToken)
  return { id: caller.userId, username, credentials, caller, accessToken, refreshToken }
}

const nonce = Buffer.alloc(16)
const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory: 8, passes: 1 })
/** The hash of `password` with low cost, because many tests sign in. The stored form contains the cost. */
const passwordHash = ['argon2id', 8, 1, 1, nonce.toString('base64url'), tag.toString('base64url')].join('$')

async function signInNewUser(username: string): Promise<SignedInUser> {
  await transact([patch(keys.username(username), { set: { passwordHash } })])
  return signInUser(username)
}

export async function setUpPlatform(): Promise<SignedInUser> {
  await bootstrapPlatform()
  await complete({ ...administrator, initialAdminToken: await adminToken() })
  return signInNewUser(administrator.adminUsername)
}

export const userRequest = (roles: Role[] = ['Operator'], username = `u-${randomUUID()}`) => ({
  username,
  email: `${username}@example.com`,
  password,
  roles,
})

export async function createColleague(caller: Caller, ...roles: Role[]): Promise<SignedInUser> {
  const { username } = await UserAdmin.create(caller, userRequest(roles))
  return signInNewUser(username)
}

export async function createTenantAdministrator(platform: Caller): Promise<SignedInUser> {
  const { id: organisationId } = await Organisation.create(platform, { name: `Tenant ${randomUUID()}` })
  const { username } = await UserAdmin.create(platform, { ...userRequest(['OrgAdmin']), organisationId })
  return signInNewUser(username)
}

export async function bearer(roles: [string], organisationId = newId('org')): Promise<{ authorization: string }> {
  const caller = await newCaller(organisationId, ...roles)
  return { authorization: `Bearer ${await issueAccessToken({ ...caller, roles })}` }
}

export async function relayToken(
  relayId: string,
  key: KeyObject,
  path: string,
  body = '',
): Promise<{ authorization: string }> {
  const bodySha256 = createHash('sha256').update(body).digest('base64url')
  const token = await new SignJWT({ path, bodySha256 })
    .setProtectedHeader({ alg: 'EdDSA', kid: relayId })
    .setAudience(relayAudience)
    .setJti(randomUUID())
    .setIssuedAt(nowSeconds())
    .setExpirationTime(nowSeconds() + 30)
    .sign(key)
  return { authorization: `Relay ${token}` }
}

export type Requester = readonly [caller: Caller, role: Role] | undefined

/** Calls a function by operation, such as `POST /api/v1/sites`. Returns the error code, or the status of a success. */
export async function requestErrorCode(
  name: FunctionName,
  request: string,
  requester: Requester,
  body?: object,
): Promise<string> {
  const { handler } = (await import(`../../functions/${name}.ts`)) as { handler: GatewayHandler }
  const [method = '', target = ''] = request.split(' ')
  const token = requester && (await issueAccessToken({ ...requester[0], roles: [requester[1]] }))
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { 'content-type': 'application/json' }),
  }
  const response = await send(handler, { method, target, headers, ...(body && { body: JSON.stringify(body) }) })
  return response.json?.error ?? String(response.status)
}

export async function errorOf(call: Promise<unknown>): Promise<PlatformError> {
  const outcome = await call.catch((error: unknown) => error)
  if (outcome instanceof PlatformError) return outcome
  throw new Error('Expected a PlatformError.', { cause: outcome })
}
