import { randomBytes } from 'node:crypto'
import { username as usernameRule } from '@platform/contract/setup'
import { signIn } from '@platform/core/accounts/session'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { batchRemove, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, sha256 } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { enroll } from '@platform/core/relays/enrollment'
import { scriptJob } from '../../core/support/jobs.ts'
import { type RequestParts, validRequest, call } from '../../functions/fixtures.ts'
import { password, type SignedInUser, newUser } from '../../functions/users.ts'
import { type Operation, operationNamed, withParameters } from '../../functions/operations.ts'
import { publicPortalHeaders } from '../../support/browser-session.ts'
import { administrator, adminToken, enrollRequest, newCaller, newRelayKey, relayToken } from '../../support/fixtures.ts'
import { decodedPath } from '../../support/request.ts'
import type { ValidRequest, Wire } from './request.ts'
import { oddTexts } from './values.ts'

export interface Sender {
  /** In a network of its own, because failed sign-ins are limited for each network. */
  address: string
  valid: ValidRequest
  authenticate: (wire: Wire) => Promise<Record<string, string>> | Record<string, string>
}

type NewSender = Omit<Sender, 'address'>

const hex = (size: number): string => randomBytes(size).toString('hex')
const newAddress = (): string => `2001:db8:${hex(2)}:${hex(1)}00::1`

const toValid = (
  { params = {}, query = {}, body }: RequestParts,
  headers: Record<string, string> = {},
): ValidRequest => ({
  params,
  query,
  headers,
  body,
})

const platformPermissions = new Set(['platform:admin', 'modules:install'])

async function userSender(operation: Operation): Promise<NewSender> {
  const user = await newUser(platformPermissions.has(operation.endpoint.access) ? 'PlatformAdmin' : 'OrgAdmin')
  return { valid: toValid(await validRequest(operation, user)), authenticate: () => user.headers }
}

/**
 * Returns a relay as the sender. For operations on a job, the relay has a job, which is already claimed unless the
 * operation is the claim.
 */
async function relaySender({ name }: Operation): Promise<NewSender> {
  const owner = await newCaller()
  const key = newRelayKey()
  const { id: clusterId, enrollmentToken } = await Cluster.register(owner, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId, nodes } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const nodeId = nodes[0]?.id ?? ''
  const authenticate = ({ path, body = '' }: Wire): Promise<Record<string, string>> =>
    relayToken(relayId, key.privateKey, decodedPath(path), Buffer.from(body).toString())
  const heartbeat = { nodes: [{ id: nodeId, status: 'Online' }], running: [], freeSlots: 4 }
  if (name.endsWith('/heartbeat')) return { valid: toValid({ body: heartbeat }), authenticate }
  if (name.endsWith('/goodbye')) return { valid: toValid({ body: { reason: 'stopped' } }), authenticate }
  const { id: jobId } = await Job.submit(owner, scriptJob(clusterId))
  const params = { id: jobId }
  if (name.endsWith('/claim')) return { valid: toValid({ params }), authenticate }
  const claim = operationNamed('POST /api/v1/relay/jobs/{id}/claim')
  const path = withParameters(claim.endpoint.path, () => jobId)
  const { leaseId } = (await call(claim, { params }, await authenticate({ path, query: '', headers: {} }))).json
  const output = { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'x' }
  const completion = { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] }
  return { valid: toValid({ params, body: name.endsWith('/output') ? output : completion }), authenticate }
}

const credentials = ({ username }: SignedInUser): RequestParts => ({ body: { username, password } })
const refreshTokenOf = async ({ username }: SignedInUser): Promise<string> =>
  (await signIn({ username, password }, { address: newAddress() })).refreshToken

const repeatedNames = [...oddTexts, 'xxx', 'x'.repeat(64)].filter((text) => usernameRule.safeParse(text).success)

/** Reopens setup and frees the names that earlier requests took. */
async function reopenSetup(): Promise<RequestParts> {
  await batchRemove(repeatedNames.map(keys.username))
  const initialAdminToken = await adminToken()
  const set = { setupComplete: false, tokenHash: sha256(initialAdminToken), tokenMintedAtMs: now() }
  await transact([patch(keys.platform(), { set })])
  const name = newId('org')
  return { body: { ...administrator, platformName: name, adminUsername: name, initialAdminToken } }
}

async function providerId(): Promise<string> {
  const operation = operationNamed('DELETE /api/v1/platform/identity/providers/{id}')
  return (await validRequest(operation, await newUser('PlatformAdmin'))).params?.['id'] ?? ''
}

async function enrollment(user: SignedInUser): Promise<RequestParts> {
  const body = { name: newId('clus'), type: 'Hypervisor' }
  const { json } = await call(operationNamed('POST /api/v1/clusters'), { body }, user.adminHeaders)
  return { body: enrollRequest(json.enrollmentToken) }
}

const state = 'x'.repeat(43)
const consent = (): RequestParts => ({ query: { state, tenant: newId('org') } })

const publicRequests: Readonly<Record<string, (user: SignedInUser) => RequestParts | Promise<RequestParts>>> = {
  'GET /api/v1/setup/status': async () => (await reopenSetup(), {}),
  'POST /api/v1/setup/complete': reopenSetup,
  'POST /api/v1/auth/login': credentials,
  'POST /api/v1/auth/local-login': credentials,
  'POST /api/v1/auth/session': credentials,
  'POST /api/v1/auth/refresh': async (user) => ({ body: { refreshToken: await refreshTokenOf(user) } }),
  'GET /api/v1/auth/oidc/{id}/authorize': async () => ({
    params: { id: await providerId() },
    query: { returnTo: '/jobs' },
  }),
  'GET /api/v1/auth/oidc/{id}/callback': async () => ({
    params: { id: await providerId() },
    query: { state, code: 'x' },
  }),
  'POST /api/v1/auth/oidc/token': () => ({ body: { code: state } }),
  'GET /api/v1/platform/identity/consent-callback': consent,
  'POST /api/v1/platform/identity/consent-callback': consent,
  'POST /api/v1/relay/enroll': enrollment,
}

/**
 * Operations that succeed only after a sign-in or a consent request at an identity provider, because they need its code
 * or `state`.
 */
export const withoutSuccess: ReadonlySet<string> = new Set([
  'POST /api/v1/auth/oidc/token',
  'GET /api/v1/platform/identity/consent-callback',
  'POST /api/v1/platform/identity/consent-callback',
])

async function publicSender({ name, endpoint }: Operation): Promise<NewSender> {
  const user = await newUser('OrgAdmin')
  const request = (await publicRequests[name]?.(user)) ?? {}
  if (!endpoint.sameOriginOnly) return { valid: toValid(request), authenticate: () => ({}) }
  const isRefresh = name === 'POST /api/v1/auth/session/refresh'
  const cookie = isRefresh ? { cookie: `__Host-plat_refresh=${await refreshTokenOf(user)}` } : {}
  return { valid: toValid(request, { ...publicPortalHeaders, ...cookie }), authenticate: () => ({}) }
}

export async function newSender(operation: Operation): Promise<Sender> {
  const { access } = operation.endpoint
  const create = access === 'relay' ? relaySender : access === 'public' ? publicSender : userSender
  return { ...(await create(operation)), address: newAddress() }
}
