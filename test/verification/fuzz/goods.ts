import { username as usernameRule } from '@platform/contract/setup'
import { newId, sha256 } from '@platform/core/id'
import * as Cluster from '@platform/core/clusters/cluster'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { dispatch } from '@platform/core/jobs/dispatch'
import { enroll } from '@platform/core/relays/enrollment'
import * as Job from '@platform/core/jobs/job'
import { signIn } from '@platform/core/accounts/session'
import { scriptJob } from '../../core/support/jobs.ts'
import { type Ask, askOf, call } from '../../functions/fixtures.ts'
import { password, type Person, personOf } from '../../functions/person.ts'
import { type Row, rowNamed, withParameters } from '../../functions/table.ts'
import { publicPortalHeaders } from '../../support/browser-session.ts'
import { decodedPath } from '../../support/request.ts'
import { administrator, adminToken, newCaller, enrollRequest, newRelayKey, relayToken } from '../../support/fixtures.ts'
import { deleteItems } from '../support/platform-state.ts'
import type { Good, Wire } from './request.ts'
import { oddTexts } from './values.ts'

/** Somebody who may make a request, and a good one of theirs. */
export interface Sender {
  good: Good
  /** The headers that say who sends it. */
  sign: (wire: Wire) => Promise<Record<string, string>> | Record<string, string>
}

const goodOf = ({ params = {}, query = {}, body }: Ask, headers: Record<string, string> = {}): Good => ({
  params,
  query,
  headers,
  body,
})

const forPlatform = new Set(['platform:admin', 'modules:install'])

async function userOf(row: Row): Promise<Sender> {
  const who = await personOf(forPlatform.has(row.endpoint.access) ? 'PlatformAdmin' : 'OrgAdmin')
  return { good: goodOf(await askOf(row, who)), sign: () => who.headers }
}

/** A relay with a job that waits and one that it has claimed. */
async function relayOf({ name }: Row): Promise<Sender> {
  const owner = await newCaller()
  const key = newRelayKey()
  const { id: clusterId, enrollmentToken } = await Cluster.register(owner, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId, nodes } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const nodeId = nodes[0]?.id ?? ''
  const sign = ({ path, body = '' }: Wire): Promise<Record<string, string>> =>
    relayToken(relayId, key.privateKey, decodedPath(path), Buffer.from(body).toString())
  const newJob = async (): Promise<string> => {
    const { id: jobId } = await Job.submit(owner, scriptJob(clusterId))
    await dispatch({ organisationId: owner.organisationId, jobId })
    return jobId
  }
  const beat = { nodes: [{ id: nodeId, status: 'Online' }], running: [], freeSlots: 4 }
  if (name === 'POST /api/v1/relay/heartbeat') return { good: goodOf({ body: beat }), sign }
  if (name === 'POST /api/v1/relay/goodbye') return { good: goodOf({ body: { reason: 'stopped' } }), sign }
  const jobId = await newJob()
  const params = { id: jobId }
  if (name.endsWith('/claim')) return { good: goodOf({ params }), sign }
  const claim = rowNamed('POST /api/v1/relay/jobs/{id}/claim')
  const path = withParameters(claim.endpoint.path, () => jobId)
  const { json } = await call(claim, { params }, await sign({ path, query: '', headers: {} }))
  const { leaseId } = json
  const output = { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'x' }
  const completion = { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] }
  return { good: goodOf({ params, body: name.endsWith('/output') ? output : completion }), sign }
}

const nothing = (): Ask => ({})
const credentials = ({ username }: Person): Ask => ({ body: { username, password } })
const signedIn = ({ username }: Person) => signIn({ username, password }, { address: '192.0.2.1' })

/** What administrators are called who come again and again: odd texts, and the least and the most letters. */
const recurring = [...oddTexts, 'x'.repeat(3), 'x'.repeat(64)].filter((text) => usernameRule.safeParse(text).success)

/** Opens setup again, as before anybody has completed it: names that former ones took are free. */
async function reopenedSetup(): Promise<Ask> {
  await deleteItems(recurring.map(keys.username))
  const initialAdminToken = await adminToken()
  const set = { setupComplete: false, tokenHash: sha256(initialAdminToken), tokenMintedAtMs: now() }
  await transact([patch(keys.platform(), { set })])
  const name = newId('org')
  return { body: { ...administrator, platformName: name, adminUsername: name, initialAdminToken } }
}

/** An identity provider whose address nobody has. */
const aProvider = async (): Promise<string> => {
  const row = rowNamed('DELETE /api/v1/platform/identity/providers/{id}')
  return (await askOf(row, await personOf('PlatformAdmin'))).params?.['id'] ?? ''
}

async function anEnrollment(who: Person): Promise<Ask> {
  const body = { name: newId('clus'), type: 'Hypervisor' }
  const { json } = await call(rowNamed('POST /api/v1/clusters'), { body }, who.strong)
  return { body: enrollRequest(json.enrollmentToken) }
}

/** What anybody may send; what is not here is asked without anything. */
const publicAsks: Readonly<Record<string, (who: Person) => Ask | Promise<Ask>>> = {
  'GET /api/v1/setup/status': async () => (await reopenedSetup(), {}),
  'POST /api/v1/setup/complete': reopenedSetup,
  'POST /api/v1/auth/login': credentials,
  'POST /api/v1/auth/local-login': credentials,
  'POST /api/v1/auth/session': credentials,
  'POST /api/v1/auth/refresh': async (who) => ({ body: { refreshToken: (await signedIn(who)).refreshToken } }),
  'GET /api/v1/auth/oidc/{id}/authorize': async () => ({
    params: { id: await aProvider() },
    query: { returnTo: '/jobs' },
  }),
  'GET /api/v1/auth/oidc/{id}/callback': async () => ({
    params: { id: await aProvider() },
    query: { state: 'x'.repeat(43), code: 'x' },
  }),
  'POST /api/v1/auth/oidc/token': () => ({ body: { code: 'x'.repeat(43) } }),
  'GET /api/v1/platform/identity/consent-callback': () => ({ query: { state: 'x'.repeat(43), tenant: newId('org') } }),
  'POST /api/v1/platform/identity/consent-callback': () => ({ query: { state: 'x'.repeat(43), tenant: newId('org') } }),
  'POST /api/v1/relay/enroll': anEnrollment,
}

/** What has no success without somebody else: a provider that answers, or the state that one of its pages was given. */
export const withoutSuccess: ReadonlySet<string> = new Set([
  'POST /api/v1/auth/oidc/token',
  'GET /api/v1/platform/identity/consent-callback',
  'POST /api/v1/platform/identity/consent-callback',
])

async function anybodyOf({ name, endpoint }: Row): Promise<Sender> {
  const who = await personOf('OrgAdmin')
  const ask = await (publicAsks[name] ?? nothing)(who)
  if (!endpoint.sameOriginOnly) return { good: goodOf(ask), sign: () => ({}) }
  const isRefresh = name === 'POST /api/v1/auth/session/refresh'
  const cookie = isRefresh ? { cookie: `__Host-plat_refresh=${(await signedIn(who)).refreshToken}` } : {}
  return { good: goodOf(ask, { ...publicPortalHeaders, ...cookie }), sign: () => ({}) }
}

/** Somebody new who may make the request of an operation, and what it is about. */
export function senderOf(row: Row): Promise<Sender> {
  const { access } = row.endpoint
  if (access === 'relay') return relayOf(row)
  return access === 'public' ? anybodyOf(row) : userOf(row)
}
