import { randomUUID } from 'node:crypto'
import { batchLimit } from '@platform/contract/batch'
import { enrollmentKeyLimit } from '@platform/contract/enrollment-key'
import { labelLimit } from '@platform/contract/label'
import { projectOrganisation } from '@platform/core/background/projections'
import { system } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { remove, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { version } from '@platform/core/lib/version'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { commit } from '@platform/core/outbox/commit'
import { cloud } from '../core/support/identity.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../core/support/modules.ts'
import { enrollRequest } from '../support/fixtures.ts'
import { type ImageOptions, type Signer, writtenManifest } from '../support/module-registry.ts'
import { type TestRequest, type TestResponse, send } from '../support/request.ts'
import { moduleWorld, pushRelease } from './module-world.ts'
import { type Operation, operationNamed, operations, withParameters } from './operations.ts'
import { type Headers, newUser, password, type SignedInUser } from './users.ts'

/** A successful request for each operation of signed-in users. Every new operation needs a line here. */

export interface RequestParts {
  params?: Record<string, string>
  query?: Record<string, string>
  body?: object
}

type Fixture = (user: SignedInUser) => RequestParts | Promise<RequestParts>

export function toRequest(
  { method, endpoint }: Operation,
  { params = {}, query = {}, body }: RequestParts,
  headers: Headers,
): TestRequest {
  const path = withParameters(endpoint.path, (name) => params[name] ?? '')
  const search = new URLSearchParams(query).toString()
  return {
    method,
    target: search === '' ? path : `${path}?${search}`,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  }
}

export const call = (operation: Operation, parts: RequestParts, headers: Headers): Promise<TestResponse> =>
  send(operation.handler, toRequest(operation, parts, headers))

export function validRequest({ name }: Operation, user: SignedInUser): RequestParts | Promise<RequestParts> {
  const fixture = fixtures[name]
  if (fixture === undefined) throw new Error(`${name} has no line in fixtures.ts.`)
  return fixture(user)
}

/**
 * Returns a request with a target. A target has one member, so each kind of id in a target needs a separate request.
 */
export async function requestWithTarget(operation: Operation, user: SignedInUser, member?: string, context?: string) {
  const { jobs, ...body } = ((await validRequest(operation, user)).body ?? {}) as Record<string, unknown>
  const { clusterId, ...script } = await newScript(user)
  const target =
    member === 'savedFilterId' ? { savedFilterId: (await newFilter(user, context)).id } : { clusterIds: [clusterId] }
  return { body: { ...body, ...(jobs !== undefined && script), target } }
}

/** Performs another operation, by default as the administrator. Returns its response body. */
async function perform({ adminHeaders }: SignedInUser, name: string, parts: RequestParts, headers = adminHeaders) {
  const { status, text, json } = await call(operationNamed(name), parts, headers)
  if (status >= 300) throw new Error(`${name} returned ${status} ${text}`)
  return json
}

const uniqueName = (): string => `name ${randomUUID()}`
const noParameters: Fixture = () => ({})

const newSite = (user: SignedInUser) => perform(user, 'POST /api/v1/sites', { body: { name: uniqueName() } })
const siteParams: Fixture = async (user) => ({ params: { id: (await newSite(user)).id } })

const newCluster = (user: SignedInUser, labels = {}) =>
  perform(user, 'POST /api/v1/clusters', { body: { name: uniqueName(), type: 'Hypervisor', labels } })
const clusterParams: Fixture = async (user) => ({ params: { id: (await newCluster(user)).id } })

const keySettings = () => ({
  name: uniqueName(),
  maxUses: 1,
  requireApproval: true,
  expiresAt: new Date(now() + 86_400_000).toISOString(),
})
const newEnrollmentKey = (user: SignedInUser) => perform(user, 'POST /api/v1/enrollment-keys', { body: keySettings() })

/** Returns a request for a relay update. Cancels a running update first, because only one may run at a time. */
async function relayUpdate(user: SignedInUser): Promise<{ body: object }> {
  const currentRelease = JSON.stringify({ version, relay: { sha256: 'a'.repeat(64), signature: 'c2ln' } })
  await transact([upsert(keys.updateState(), { set: { current: currentRelease } })])
  const { items } = await perform(user, 'GET /api/v1/relay-updates', {})
  const runningUpdate = items.find(({ status }: { status: string }) => status === 'Running')
  if (runningUpdate) await perform(user, 'POST /api/v1/relay-updates/{id}/cancel', { params: { id: runningUpdate.id } })
  return { body: { target: { clusterIds: [(await newCluster(user)).id] }, canary: 1, maxConcurrent: 2 } }
}
const relayUpdateParams: Fixture = async (user) => ({
  params: { id: (await perform(user, 'POST /api/v1/relay-updates', await relayUpdate(user))).id },
})

async function newScript(user: SignedInUser) {
  const cluster = await newCluster(user)
  const relay = await perform(user, 'POST /api/v1/relay/enroll', { body: enrollRequest(cluster.enrollmentToken) })
  const payload = { script: 'true', targetNodeIds: [relay.nodes[0].id] }
  return { clusterId: cluster.id, type: 'InvokeScript', payload }
}
const newJob = async (user: SignedInUser) => perform(user, 'POST /api/v1/jobs', { body: await newScript(user) })
const jobParams: Fixture = async (user) => ({ params: { id: (await newJob(user)).id } })
const newBatch = async (user: SignedInUser) =>
  perform(user, 'POST /api/v1/jobs/batch', { body: { jobs: [await newScript(user)] } })
const batchParams: Fixture = async (user) => ({ params: { batchId: (await newBatch(user)).batchId } })

async function finishedBatch(user: SignedInUser): Promise<RequestParts> {
  const parts = await batchParams(user)
  await perform(user, 'POST /api/v1/jobs/batch/{batchId}/cancel', parts)
  const { organisationId } = user
  await advanceBatch({ organisationId, batchId: parts.params?.['batchId'] ?? '' })
  await projectOrganisation(organisationId)
  return parts
}

const filter = (context = 'clusters') => ({ body: { name: uniqueName(), context, filter: {} } })
const newFilter = (user: SignedInUser, context?: string) =>
  perform(user, 'POST /api/v1/users/me/saved-filters', filter(context), user.headers)
const newToken = (user: SignedInUser) =>
  perform(user, 'POST /api/v1/users/me/tokens', { body: { name: uniqueName() } }, user.headers)

const colleagueParams: Fixture = async (user) => ({
  params: { id: (await newUser('Viewer', user.organisationId)).userId },
})
const newAccount = () => ({ username: `u-${randomUUID()}`, email: 'ada@example.com', password, roles: ['Viewer'] })

const hook = { url: 'https://hooks.example.com/platform', events: ['*'], selector: 'env=prod' }
const newWebhook = (user: SignedInUser) => perform(user, 'POST /api/v1/webhooks', { body: hook })
const webhookParams: Fixture = async (user) => ({ params: { id: (await newWebhook(user)).id } })
async function deliveryParams(user: SignedInUser): Promise<RequestParts> {
  const { id } = await newWebhook(user)
  const delivery = await perform(user, 'POST /api/v1/webhooks/{id}/test', { params: { id } })
  return { params: { id, deliveryId: delivery.id } }
}

const moduleParams: Fixture = async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  return { params: { id } }
}

type ImageOf = (id: string) => Image | Promise<Image>
type Image = ImageOptions & { signer?: Signer }

const catalogModuleOf = (imageOf: ImageOf, release?: object) => async () => {
  const id = newModuleId()
  const { repository, digest } = await moduleWorld.push(id, await imageOf(id))
  await putCatalog({ [repository]: [catalogRelease(id, '1.0.0', { digest, ...release })] })
  return { params: { id }, body: {} }
}
const catalogModule = catalogModuleOf(() => ({}))

const imageModuleOf = (imageOf: ImageOf) => async () => {
  const id = newModuleId()
  return { body: { imageRef: (await moduleWorld.push(id, await imageOf(id))).reference } }
}

const withoutUpdate: Fixture = async () => {
  await transact([remove(keys.updateState())])
  return {}
}

const updateRequest: Fixture = async (user) => {
  await withoutUpdate(user)
  const { version: targetVersion } = await pushRelease()
  return { body: { action: 'apply', targetVersion, force: true } }
}

const providerParams: Fixture = async () => {
  const body = { ...cloud, authorityHost: 'https://login.invalid' }
  const { id } = await perform(await newUser('PlatformAdmin'), 'POST /api/v1/platform/identity/providers', { body })
  return { params: { id } }
}

async function newNotification({ userId, organisationId, headers }: SignedInUser): Promise<string> {
  const event = { name: 'session.reuse_detected', subject: userId, data: { userId, sessionId: newId('sess') } } as const
  await commit(system(organisationId), { writes: [], events: [event] })
  await projectOrganisation(organisationId)
  return (await call(operationNamed('GET /api/v1/notifications'), {}, headers)).json.items[0].id
}

const fixtures: Record<string, Fixture> = {
  'POST /api/v1/auth/logout': noParameters,
  'GET /api/v1/auth/me': noParameters,

  'GET /api/v1/clusters': async (user) => ({
    query: { filterId: (await newFilter(user)).id, ids: (await newCluster(user)).id, selector: '!legacy' },
  }),
  'GET /api/v1/clusters/labels': noParameters,
  'POST /api/v1/clusters/labels': async (user) => ({
    body: { target: { clusterIds: [(await newCluster(user)).id] }, set: { env: 'prod' }, remove: ['legacy'] },
  }),
  'POST /api/v1/clusters/site': async (user) => ({
    body: { target: { clusterIds: [(await newCluster(user)).id] }, siteId: (await newSite(user)).id },
  }),
  'POST /api/v1/targets/resolve': async (user) => ({
    body: { target: { clusterIds: [(await newCluster(user)).id] }, includeStatus: true },
  }),
  'POST /api/v1/clusters/{id}/approve': async (user) => {
    const { enrollmentKey } = await newEnrollmentKey(user)
    const { enrollmentToken: _, ...request } = enrollRequest('')
    const body = { ...request, enrollmentKey, hostname: `host-${randomUUID()}` }
    return { params: { id: (await perform(user, 'POST /api/v1/relay/enroll', { body })).clusterId } }
  },
  'GET /api/v1/enrollment-keys': noParameters,
  'POST /api/v1/enrollment-keys': async (user) => ({
    body: { ...keySettings(), siteId: (await newSite(user)).id, labels: { env: 'prod' } },
  }),
  'DELETE /api/v1/enrollment-keys/{id}': async (user) => ({ params: { id: (await newEnrollmentKey(user)).id } }),
  'GET /api/v1/relay-updates': noParameters,
  'POST /api/v1/relay-updates': relayUpdate,
  'GET /api/v1/relay-updates/{id}': relayUpdateParams,
  'GET /api/v1/relay-updates/{id}/clusters': async (user) => ({
    ...(await relayUpdateParams(user)),
    query: { status: 'Pending' },
  }),
  'POST /api/v1/relay-updates/{id}/cancel': relayUpdateParams,
  'GET /api/v1/nodes': () => ({ query: { selector: 'env=prod', os: 'linux', search: 'n', sort: 'name' } }),
  'POST /api/v1/clusters': async (user) => ({
    body: { name: uniqueName(), type: 'Hypervisor', siteId: (await newSite(user)).id, labels: { env: 'prod' } },
  }),
  'GET /api/v1/clusters/{id}': clusterParams,
  'PATCH /api/v1/clusters/{id}': async (user) => ({
    ...(await clusterParams(user)),
    body: { name: uniqueName(), siteId: (await newSite(user)).id, labels: { env: 'prod', legacy: null } },
  }),
  'DELETE /api/v1/clusters/{id}': clusterParams,
  'POST /api/v1/clusters/{id}/enrollment-token': clusterParams,

  'GET /api/v1/sites': noParameters,
  'POST /api/v1/sites': () => ({ body: { name: uniqueName() } }),
  'DELETE /api/v1/sites/{id}': siteParams,

  'GET /api/v1/clusters/{id}/timeline': clusterParams,

  'POST /api/v1/jobs': async (user) => ({ body: await newScript(user) }),
  'GET /api/v1/jobs': async (user) => {
    const job = await newScript(user)
    const { batchId } = await perform(user, 'POST /api/v1/jobs/batch', { body: { jobs: [job] } })
    await advanceBatch({ organisationId: user.organisationId, batchId })
    return { query: { clusterId: job.clusterId, batchId } }
  },
  'GET /api/v1/jobs/{id}': jobParams,
  'POST /api/v1/jobs/{id}/cancel': jobParams,
  'GET /api/v1/jobs/{id}/output': jobParams,

  'POST /api/v1/jobs/batch': async (user) => ({ body: { jobs: [await newScript(user)] } }),
  'GET /api/v1/jobs/batch': noParameters,
  'GET /api/v1/jobs/batch/{batchId}': batchParams,
  'POST /api/v1/jobs/batch/{batchId}/cancel': batchParams,
  'POST /api/v1/jobs/batch/{batchId}/retry': finishedBatch,
  'GET /api/v1/jobs/batch/{batchId}/groups': finishedBatch,
  'GET /api/v1/jobs/batch/{batchId}/groups/{group}/clusters': async (user) => {
    const { params } = await finishedBatch(user)
    return { params: { ...params, group: '0' } }
  },
  'GET /api/v1/jobs/batch/{batchId}/results': finishedBatch,

  'GET /api/v1/users/me/dashboard-layout': noParameters,
  'PATCH /api/v1/users/me/dashboard-layout': () => ({ body: { layout: [] } }),
  'GET /api/v1/users/me/saved-filters': noParameters,
  'POST /api/v1/users/me/saved-filters': () => filter(),
  'DELETE /api/v1/users/me/saved-filters/{id}': async (user) => ({ params: { id: (await newFilter(user)).id } }),
  'PUT /api/v1/users/me/password': () => ({ body: { currentPassword: password, newPassword: `${password}!` } }),

  'GET /api/v1/users/me/sessions': noParameters,
  'DELETE /api/v1/users/me/sessions/{id}': ({ sessionId }) => ({ params: { id: sessionId } }),
  'GET /api/v1/users/me/tokens': noParameters,
  'POST /api/v1/users/me/tokens': () => ({ body: { name: uniqueName() } }),
  'DELETE /api/v1/users/me/tokens/{id}': async (user) => ({ params: { id: (await newToken(user)).id } }),

  'GET /api/v1/users': noParameters,
  'POST /api/v1/users': ({ organisationId }) => ({ body: { ...newAccount(), organisationId } }),
  'GET /api/v1/roles': noParameters,
  'GET /api/v1/users/{id}': colleagueParams,
  'PATCH /api/v1/users/{id}': async (user) => ({
    ...(await colleagueParams(user)),
    body: { email: 'eve@example.com' },
  }),
  'DELETE /api/v1/users/{id}': colleagueParams,
  'DELETE /api/v1/users/{id}/sessions': colleagueParams,
  'DELETE /api/v1/users/{id}/tokens': async (user) => {
    const colleague = await newUser('Viewer', user.organisationId)
    await newToken(colleague)
    return { params: { id: colleague.userId } }
  },
  'GET /api/v1/organisation/settings': noParameters,
  'PATCH /api/v1/organisation/settings': () => ({ body: { maxTokenLifetimeDays: 365, jobRetentionDays: 30 } }),
  'GET /api/v1/platform/settings': noParameters,
  'PATCH /api/v1/platform/settings': () => ({ body: { publicUrl: `https://${randomUUID()}.example.com` } }),
  'GET /api/v1/platform/organisations': noParameters,
  'POST /api/v1/platform/organisations': () => ({ body: { name: uniqueName() } }),
  'PATCH /api/v1/platform/organisations/{id}': ({ organisationId }) => ({
    params: { id: organisationId },
    body: { quotas: { clusters: 50_000 } },
  }),
  'GET /api/v1/organisation/usage': noParameters,

  'GET /api/v1/webhooks': noParameters,
  'POST /api/v1/webhooks': () => ({ body: hook }),
  'PATCH /api/v1/webhooks/{id}': async (user) => ({ ...(await webhookParams(user)), body: { enabled: false } }),
  'DELETE /api/v1/webhooks/{id}': webhookParams,
  'POST /api/v1/webhooks/{id}/rotate-secret': webhookParams,
  'POST /api/v1/webhooks/{id}/test': webhookParams,
  'GET /api/v1/webhooks/{id}/deliveries': webhookParams,
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver': deliveryParams,

  'GET /api/v1/modules/catalog': noParameters,
  'POST /api/v1/modules/catalog/scan': noParameters,
  'GET /api/v1/modules': noParameters,
  'GET /api/v1/modules/{id}': moduleParams,
  'POST /api/v1/modules/{id}/install': catalogModule,
  'DELETE /api/v1/modules/{id}': moduleParams,
  'POST /api/modules/install': imageModuleOf(() => ({})),
  'DELETE /api/modules/{id}': moduleParams,
  'GET /api/v1/organisation/modules': noParameters,
  'PUT /api/v1/organisation/modules/{id}': async (user) => ({
    ...(await moduleParams(user)),
    body: { enabled: true },
  }),
  'GET /api/v1/portal/navigation': noParameters,
  'GET /api/v1/portal/summary': noParameters,
  'GET /api/v1/portal/history': noParameters,

  'GET /api/v1/notifications': noParameters,
  'PATCH /api/v1/notifications': async (user) => ({ body: { ids: [await newNotification(user)] } }),
  'GET /api/v1/platform/audit': async (user) => {
    const { id: resource } = await newSite(user)
    await projectOrganisation(user.organisationId)
    return { query: { actor: user.userId, resource } }
  },
  'POST /api/v1/platform/audit': () => ({ body: { action: 'change.approved', resource: 'x', detail: 'y' } }),
  'GET /api/v1/platform/audit/checkpoint': noParameters,
  'GET /api/v1/platform/audit/export': noParameters,
  'GET /api/v1/platform/audit/verify': noParameters,
  'GET /api/v1/platform/identity/providers': noParameters,
  'POST /api/v1/platform/identity/providers': () => ({ body: cloud }),
  'DELETE /api/v1/platform/identity/providers/{id}': providerParams,
  'POST /api/v1/platform/identity/providers/{id}/test': providerParams,
  'POST /api/v1/platform/identity/providers/{id}/consent': providerParams,
  'GET /api/v1/events/catalog': noParameters,

  'GET /api/v1/platform/updates/check': withoutUpdate,
  'PUT /api/v1/platform/updates/apply': updateRequest,
}

export const staleFixtures = Object.keys(fixtures).filter((name) => operations.every((each) => each.name !== name))

const withQuota =
  (quotas: object, fixture: Fixture): Fixture =>
  async (user) => {
    const [parts, administrator] = [await fixture(user), await newUser('PlatformAdmin')]
    const request = { params: { id: user.organisationId }, body: { quotas } }
    await perform(administrator, 'PATCH /api/v1/platform/organisations/{id}', request)
    return parts
  }

const repeated =
  (name: string, fixture: Fixture): Fixture =>
  async (user) => {
    const parts = await fixture(user)
    await perform(user, name, parts)
    return parts
  }

const bodyWith =
  (fixture: Fixture, change: object): Fixture =>
  async (user) => {
    const { body, ...parts } = await fixture(user)
    return { ...parts, body: { ...body, ...change } }
  }

const scriptJob: Fixture = async (user) => ({ body: await newScript(user) })
const account: Fixture = () => ({ body: newAccount() })
const allLabels = Object.fromEntries(Array.from({ length: labelLimit }, (_, index) => [`label-${index}`, 'x']))

const imageErrors: Record<string, ImageOf> = {
  image_not_a_module: () => ({ labels: {} }),
  manifest_invalid: () => ({ manifest: {} }),
  manifest_id_mismatch: () => ({ manifest: writtenManifest(newModuleId()) }),
  manifest_mismatch: (id) => ({ manifest: writtenManifest(id, '2.0.0') }),
  sdk_incompatible: (id) => ({ manifest: writtenManifest(id, '1.0.0', { sdkVersion: '^9.0.0' }) }),
  module_signature_unverified: () => ({ signer: false }),
  module_already_installed: (id) => putModule(releaseFor(id)).then(() => ({})),
  module_operation_in_progress: (id) => putModule(releaseFor(id), { jobId: newId('job') }).then(() => ({})),
  module_route_taken: (id) =>
    putModule(releaseFor(newModuleId(), { spec: { apiBasePath: `/api/${id}` } })).then(() => ({})),
}

/** Operation and error code → a request that fails with this error. No other test receives these errors by HTTP. */
export const rejections: Record<string, Fixture> = {
  ...Object.fromEntries(
    ['clusters/labels', 'clusters/site', 'targets/resolve', 'relay-updates', 'jobs/batch'].map((path) => [
      `POST /api/v1/${path} filter_not_applicable`,
      (user) => requestWithTarget(operationNamed(`POST /api/v1/${path}`), user, 'savedFilterId', 'jobs'),
    ]),
  ),
  'PATCH /api/v1/clusters/{id} limit_reached': async (user) => ({
    params: { id: (await newCluster(user, allLabels)).id },
    body: { labels: { env: 'prod' } },
  }),
  'POST /api/v1/clusters/{id}/approve no_pending_relay': clusterParams,
  'POST /api/v1/enrollment-keys limit_reached': async ({ organisationId }) => {
    await transact([upsert(keys.enrollmentKeyCount(organisationId), { set: { count: enrollmentKeyLimit } })])
    return { body: keySettings() }
  },
  'POST /api/v1/relay-updates relay_update_running': repeated('POST /api/v1/relay-updates', relayUpdate),
  'POST /api/v1/relay-updates target_changed': bodyWith(relayUpdate, { expectedCount: 2 }),
  'POST /api/v1/relay-updates version_not_available': bodyWith(relayUpdate, { version: '99.0.0' }),
  'POST /api/v1/relay-updates/{id}/cancel relay_update_finished': async (user) => {
    const { id } = await perform(user, 'POST /api/v1/relay-updates', await relayUpdate(user))
    await transact([upsert(keys.relayUpdate(user.organisationId, id), { set: { status: 'Completed' } })])
    return { params: { id } }
  },
  'POST /api/v1/jobs unknown_job_type': bodyWith(scriptJob, { type: 'Reboot' }),
  'POST /api/v1/jobs job_type_not_submittable': bodyWith(scriptJob, { type: 'PlatformUpdate' }),
  'POST /api/v1/jobs/batch batch_limit_exceeded': () => ({ body: { jobs: Array(batchLimit + 1).fill(0) } }),
  'POST /api/v1/jobs/batch limit_reached': withQuota({ activeJobs: 0 }, async (user) => ({
    body: { jobs: [await newScript(user)] },
  })),
  'POST /api/v1/jobs/batch/{batchId}/retry limit_reached': withQuota({ activeJobs: 0 }, finishedBatch),
  'POST /api/v1/users username_taken': (user) => ({ body: { ...newAccount(), username: user.username } }),
  'POST /api/v1/users limit_reached': withQuota({ users: 1 }, account),
  'POST /api/v1/users role_not_grantable': bodyWith(account, { roles: ['PlatformAdmin'] }),
  'POST /api/v1/users organisation_has_users': async () => ({
    body: { ...newAccount(), organisationId: (await newUser('OrgAdmin')).organisationId },
  }),
  'PATCH /api/v1/users/{id} role_not_grantable': bodyWith(colleagueParams, { roles: ['PlatformAdmin'] }),
  ...Object.fromEntries(
    Object.entries(imageErrors).flatMap(([error, imageOf]): [string, Fixture][] => [
      [`POST /api/modules/install ${error}`, imageModuleOf(imageOf)],
      [`POST /api/v1/modules/{id}/install ${error}`, catalogModuleOf(imageOf)],
    ]),
  ),
  'POST /api/modules/install url_not_allowed': bodyWith(
    imageModuleOf(() => ({})),
    {
      manifestUrl: 'https://127.0.0.1/module.json',
    },
  ),
  'POST /api/v1/modules/{id}/install image_unreachable': catalogModuleOf(() => ({}), {
    digest: `sha256:${'1'.repeat(64)}`,
  }),
  ...Object.fromEntries(
    ['DELETE /api/v1/modules/{id}', 'DELETE /api/modules/{id}'].flatMap((name): [string, Fixture][] => [
      [`${name} module_not_installed`, async () => ({ params: (await catalogModule()).params })],
      [`${name} module_operation_in_progress`, repeated(name, moduleParams)],
    ]),
  ),
}
